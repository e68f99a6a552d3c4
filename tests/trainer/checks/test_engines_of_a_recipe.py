"""Engines that a recipe names and this machine lacks are known before anything is trained."""

import importlib.util

import pytest
from trainer.tiny import tiny_recipe

from scalerl.checks import engines
from scalerl.checks.engines import check_engines
from scalerl.checks.subject import Subject

SERVED = {"hidden": 64, "layers": 1, "heads": 2, "mlp": 32}
"""Heads of 32."""


def checked(**settings):
    return [(one.name, one.level, one.found, one.remedy) for one in check_engines(Subject(tiny_recipe(**settings)))]


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(engines, "DRIVER", tmp_path / "none")


def test_a_recipe_without_engines_has_no_line():
    assert checked() == []


def test_a_model_that_vllm_cannot_serve_on_a_cpu_is_refused_unless_there_is_a_gpu(monkeypatch, tmp_path):
    vllm = {"generator": {"type": "vllm"}}
    assert checked(**vllm, model=SERVED) == [("vLLM", "ok", "installed", "")]
    (name, level, found, remedy), *others = checked(**vllm, model={**SERVED, "heads": 4})
    assert (name, level, others) == ("vLLM", "refused", [])
    assert "heads of size 16 on a CPU" in found
    assert "device: cuda" in remedy
    (tmp_path / "driver").touch()
    monkeypatch.setattr(engines, "DRIVER", tmp_path / "driver")
    assert checked(**vllm, model={**SERVED, "heads": 4}) == [("vLLM", "ok", "installed", "")]


def test_engines_that_are_not_installed_are_refused_with_the_command_that_installs_them(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(engines, "find_spec", lambda name: None if name in ("vllm", "deepspeed") else real(name))
    for settings, name in (
        ({"generator": {"type": "vllm"}, "model": SERVED}, "vllm"),
        ({"learner": {"type": "deepspeed"}}, "deepspeed"),
    ):
        ((_, level, found, remedy),) = checked(**settings)
        assert level == "refused"
        assert f"type: {name}" in found
        assert f"pip install --constraint constraints.txt '.[{name}]'" in remedy
