"""`platform plan`: what a cluster would hold, on a machine that has neither the model nor the data."""

import json

import pytest
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import AblationsError


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["plan", *arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("scale", ["8b", "scout", "gpu"])
def test_the_scales_for_gpus_fit_the_devices_they_name(scale):
    found = json.loads(run("--scale", scale, "--set", "parameters=mixed", "--json"))
    assert found["refused"] == {}
    for one in found["devices"]:
        assert one["total"] == sum(one["parts"].values()) <= 0.9 * 80e9
    assert found["step"]["gpu_hours"] > 0


def test_a_plan_names_parts_hours_and_the_settings_that_would_make_it_fit():
    shown = run("--scale", "8b", code=1)
    for part in ("weights", "gradients", "AdamW", "activations", "logits", "keys and values", "total"):
        assert f"\n{part} " in shown
    assert "trainer (x 16)" in shown
    assert "modelled GPU-hours on 79 devices" in shown  # the evaluator's is not counted
    assert "refused: the generator does not fit; to make it fit, set parameters: mixed" in shown
    assert "evaluator (x 1)" in shown


def test_a_step_of_a_generated_task_costs_about_what_runs_of_the_scale_paid():
    # A run of ScaleRL at scale smoke, seed 0, took 809 steps for 625.8 modelled GPU-hours on 64 + 16 devices.
    step = json.loads(run("--scale", "smoke", "--json"))["step"]
    assert step["gpu_hours"] == pytest.approx(625.8 / 809, rel=0.2)
    assert step["devices"] == 80


def test_settings_that_no_run_may_have_are_refused():
    with pytest.raises(AblationsError, match="kv 'recompute' has no effect with off_policy 'ppo_off_policy'"):
        run("--scale", "gpu", "--set", "kv=recompute", "--set", "off_policy={type: ppo_off_policy, k: 8}")
    with pytest.raises(AblationsError, match="unknown key 'paramters'; did you mean 'parameters'"):
        run("--scale", "8b", "--set", "paramters=mixed")
