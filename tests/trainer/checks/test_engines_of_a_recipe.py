"""Engines that a recipe names and this machine lacks are known before anything is trained."""

import importlib.util

import pytest
from trainer.tiny import tiny_recipe
from trainer.tiny_adapter import adapted_recipe
from trainer.tiny_text_model import text_model

from scalerl.checks import engines
from scalerl.checks.engines import check_engines
from scalerl.checks.subject import Subject
from scalerl.recipe import ResolvedRecipe

SERVED = {"hidden": 64, "layers": 1, "heads": 2, "mlp": 32}
"""Heads of 32."""


def checked(**settings):
    return [(one.check, one.level, one.found, one.remedy) for one in check_engines(Subject(tiny_recipe(**settings)))]


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(engines, "DRIVER", tmp_path / "none")


def test_a_recipe_without_engines_has_no_line():
    assert checked() == []


def test_a_model_that_vllm_cannot_serve_on_a_cpu_is_refused_unless_there_is_a_gpu(monkeypatch, tmp_path):
    vllm = {"generator": {"type": "vllm"}}
    assert checked(**vllm, model=SERVED) == [("vLLM", "ok", "installed", "")]
    (name, level, found, remedy), *others = checked(**vllm, model={**SERVED, "heads": 4})
    assert (name, level, others) == ("vLLM", "error", [])
    assert "heads of size 16 on a CPU" in found
    assert "device: cuda" in remedy
    (tmp_path / "driver").touch()
    monkeypatch.setattr(engines, "DRIVER", tmp_path / "driver")
    assert checked(**vllm, model={**SERVED, "heads": 4}) == [("vLLM", "ok", "installed", "")]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        # vllm/config/model.py and models/llama.py ask for these: heads, then keys and values, then the columns.
        ((32, 8, 14336, 16), ""),  # two devices have the same head of keys and values
        ((32, 8, 14336, 3), "the model's 32 heads cannot be divided equally among 3 devices"),
        ((24, 8, 14336, 6), "the model's 14336 units of the feed-forward layer cannot be divided"),
        ((24, 8, 14400, 6), "the model's 8 key-value heads cannot be divided equally"),
        ((2, 2, 96, 4), "use a divisor of 2"),
    ],
)
def test_a_model_that_devices_cannot_share_equally_is_refused(sizes, said, monkeypatch, tmp_path):
    heads, kv_heads, mlp, devices = sizes
    (tmp_path / "driver").touch()
    monkeypatch.setattr(engines, "DRIVER", tmp_path / "driver")
    shape = {"parameters": 10**9, "vocabulary": 1000, "hidden": 64 * heads, "layers": 2, "head_size": 64}
    shape |= {"heads": heads, "kv_heads": kv_heads, "mlp": mlp}
    recipe = ResolvedRecipe.model_validate(
        {
            "generator": {"type": "vllm", "tensor_parallel": devices},
            "model": {"type": "pretrained", "path": "none", "path_sha256": 64 * "0", "shape": shape},
        }
    )
    (one,) = check_engines(Subject(recipe))
    assert (one.check, one.level) == ("vLLM", "error" if said else "ok")
    assert said in one.found


def test_an_adapter_needs_its_library(monkeypatch, tmp_path):
    recipe = adapted_recipe(text_model(tmp_path / "qwen"))
    assert [(one.check, one.level) for one in check_engines(Subject(recipe))] == [("peft", "ok")]
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    (one,) = check_engines(Subject(recipe))
    assert one.level == "error"
    assert "`adapter: {type: lora}`, but peft is not installed" in one.found
    assert "'.[peft]'" in one.remedy


def test_engines_that_are_not_installed_are_refused_with_the_command_that_installs_them(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(engines, "find_spec", lambda name: None if name in ("vllm", "deepspeed") else real(name))
    for settings, name in (
        ({"generator": {"type": "vllm"}, "model": SERVED}, "vllm"),
        ({"learner": {"type": "deepspeed"}}, "deepspeed"),
    ):
        ((_, level, found, remedy),) = checked(**settings)
        assert level == "error"
        assert f"type: {name}" in found
        assert f"pip install --constraint constraints.txt '.[{name}]'" in remedy
