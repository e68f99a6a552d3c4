"""Which model a recipe names: what is refused, and that a folder counts by its content."""

import json
import shutil
from typing import cast

import pytest
from pydantic import ValidationError
from safetensors.torch import load_file, save_file
from trainer.tiny_text_model import text_model
from trainer.tiny_transformers import CONFIGS
from transformers import AutoModelForCausalLM

from scalerl.recipe import LlamaModel, MoeModel, PretrainedModel, ResolvedRecipe
from scalerl.recipe.scale import WarmStart
from scalerl.run.warm_start import start_key, unchanged_folder

DENSE = {"hidden": 64}


@pytest.fixture
def folder(tmp_path):
    return text_model(tmp_path / "qwen")


def resolved(model, **more):
    return ResolvedRecipe.model_validate({"model": model, **more})


def test_a_model_without_a_type_is_a_llama_and_writing_the_type_is_not_another_run():
    plain, typed = resolved(DENSE), resolved({"type": "llama", **DENSE})
    assert isinstance(plain.model, LlamaModel)
    assert plain.identity(0) == typed.identity(0)
    assert isinstance(resolved({"type": "moe"}).model, MoeModel)
    assert resolved({"type": "moe"}).identity(0) != resolved({"type": "llama"}).identity(0)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"type": "llama", "experts": 4}, "Extra inputs are not permitted"),
        ({"type": "llama", "router_loss": 0.1}, "Extra inputs are not permitted"),
        ({"type": "moe", "experts": 4, "experts_per_token": 4}, "experts_per_token 4 must be below experts 4"),
        ({"type": "moe", "hidden": 72, "heads": 5}, "hidden 72 must divide into 5 heads of even size"),
        ({"type": "mamba"}, "does not match any of the expected tags: 'llama', 'moe', 'pretrained'"),
        ({"type": "pretrained", "path": "/nowhere"}, "/nowhere is not a folder"),
        ({"type": "pretrained"}, "Field required"),
    ],
)
def test_what_cannot_be_meant_is_refused(model, message):
    with pytest.raises(ValidationError, match=message):
        resolved(model)


def test_a_folder_that_lacks_something_is_told_what(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ValidationError, match=r"has no weights \(\*.safetensors\) and no a tokenizer"):
        resolved({"type": "pretrained", "path": str(folder)})


def test_a_router_loss_is_refused_where_nothing_is_routed(folder, tmp_path):
    model = {"type": "pretrained", "path": str(folder), "router_loss": 0.01}
    with pytest.raises(ValidationError, match=r"router_loss 0.01 has no effect on .*: qwen2 has no experts"):
        resolved(model)
    other = tmp_path / "mixtral"
    shutil.copytree(folder, other)
    AutoModelForCausalLM.from_config(CONFIGS["mixtral"]).save_pretrained(other)
    assert resolved({**model, "path": str(other)}).model.router_loss == 0.01


def test_a_moved_folder_is_the_same_model_and_other_weights_are_another(folder, tmp_path):
    here = resolved({"type": "pretrained", "path": str(folder)})
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved)
    there = resolved({"type": "pretrained", "path": str(moved)})
    assert there.model.path != here.model.path
    assert there.identity(0) == here.identity(0)
    assert start_key(there, 0) == start_key(here, 0)

    weights = load_file(moved / "model.safetensors")
    weights["model.norm.weight"][3] += 0.5  # neither a header nor a size tells
    save_file(weights, moved / "model.safetensors", metadata={"format": "pt"})
    other = resolved({"type": "pretrained", "path": str(moved)})
    assert other.identity(0) != here.identity(0)
    with pytest.raises(ValueError, match="content has changed since the run was planned"):
        unchanged_folder(cast(PretrainedModel, there.model))
    assert unchanged_folder(cast(PretrainedModel, here.model)) == folder


def test_what_is_stored_beside_a_run_is_read_back_without_looking_at_the_folder(folder):
    recipe = resolved({"type": "pretrained", "path": str(folder)})
    stored = recipe.model_dump(mode="json")
    assert stored["model"]["path"] == str(folder)
    shutil.rmtree(folder)
    again = ResolvedRecipe.model_validate_json(json.dumps(stored), strict=True)
    assert again == recipe
    assert again.identity(0) == recipe.identity(0)


def test_a_relative_path_is_stored_absolute(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    model = PretrainedModel(path="qwen")
    assert model.path == str(folder)
    assert model.path_sha256 == PretrainedModel(path=str(folder)).path_sha256


def test_only_a_pretrained_model_needs_no_warm_start_unless_one_is_asked_for(folder):
    pretrained = {"type": "pretrained", "path": str(folder)}
    assert resolved(DENSE).warm_start == resolved({"type": "moe"}).warm_start == WarmStart()
    assert resolved(pretrained).warm_start == WarmStart(steps=0)
    assert resolved(pretrained, warm_start={"batch": 16}).warm_start == WarmStart(batch=16)


def test_warm_starts_of_all_precisions_are_shared():
    keys = {start_key(resolved(DENSE, parameters=parameters), 0) for parameters in ("fp32", "mixed", "bf16", "fp16")}
    assert len(keys) == 1
