"""A GGUF file becomes a folder with the same numbers, whole or not at all."""

import sys

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from scalerl.model.from_gguf import gguf_file, without_quantisation, write_folder


def test_the_mark_of_quantisation_goes_and_the_numbers_stay(tmp_path):
    config = LlamaConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=32
    )
    model = LlamaForCausalLM(config)
    model.config.quantization_config = {"quant_method": "gguf"}
    made = without_quantisation(model)
    assert not hasattr(made.config, "quantization_config")
    made.save_pretrained(tmp_path)
    read = AutoModelForCausalLM.from_pretrained(tmp_path)
    for name, tensor in model.state_dict().items():
        assert torch.equal(read.state_dict()[name], tensor), name


def test_a_package_is_searched_and_not_imported(tmp_path, monkeypatch):
    package = tmp_path / "has_weights"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('must not be imported')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(FileNotFoundError, match="package has_weights has 0 GGUF files"):
        gguf_file("has_weights")
    (package / "one.gguf").touch()
    assert gguf_file("has_weights") == package / "one.gguf"
    assert gguf_file(str(package / "one.gguf")) == package / "one.gguf"


def test_nothing_is_overwritten_and_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.gguf is not a file"):
        write_folder(tmp_path / "none.gguf", tmp_path / "made")
    (tmp_path / "one.gguf").touch()
    (tmp_path / "made").mkdir()
    with pytest.raises(FileExistsError, match="remove it, or name another folder"):
        write_folder(tmp_path / "one.gguf", tmp_path / "made")
