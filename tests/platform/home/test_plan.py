"""The plan: what is written is read back, and a broken file says so."""

import json
import os
from dataclasses import asdict, replace

import pytest

from ablations.errors import AblationsError
from ablations.home.plan import Plan, PlannedRun, PlannedVariant

PLAN = Plan(
    sweep="loo",
    doc="which choice raises the ceiling?",
    reference="scalerl",
    scale="laptop",
    compute_unit_gpu_hours=2000.0,
    budget_gpu_hours=2000.0,
    fit_from_gpu_hours=0.0,
    fit_to_gpu_hours=1000.0,
    stop={"gain_below": 0.01, "probability": 0.9},
    search=True,
    published={"loo-loss": {"A": 0.59, "B": 1.77, "C_mid": 2600.0}},
    variants=(
        PlannedVariant(name="scalerl", overrides={}, runs=(PlannedRun(seed=0, id="3f0c9a1b2d4e"),)),
        PlannedVariant(
            name="loo-loss", overrides={"loss": {"type": "dapo"}}, runs=(PlannedRun(seed=0, id="81d2f0a95c3b"),)
        ),
    ),
)


def test_a_plan_is_read_as_it_was_written(tmp_path):
    PLAN.write(tmp_path / "sweeps" / "loo" / "plan.json")
    assert Plan.read(tmp_path / "sweeps" / "loo" / "plan.json") == PLAN
    with pytest.raises(AblationsError, match=r"plan\.json: no such plan; to create one, run `platform sweep FILE`"):
        Plan.read(tmp_path / "plan.json")


def test_an_unchanged_plan_is_read_once_and_a_changed_one_again(tmp_path):
    file = tmp_path / "plan.json"
    PLAN.write(file)
    os.utime(file, (1e9, 1e9))
    first = Plan.read(file)
    assert Plan.read(file) is first
    replace(PLAN, sweep="olo").write(file)  # as many bytes
    os.utime(file, (1e9, 1e9 + 1))
    assert Plan.read(file).sweep == "olo"


def test_a_plan_written_just_now_is_read_again_since_its_time_may_not_show_a_further_change(tmp_path):
    file = tmp_path / "plan.json"
    PLAN.write(file)
    now = file.stat().st_mtime_ns
    assert Plan.read(file) == PLAN
    file.write_text(file.read_text().replace('"loo"', '"olo"'))
    os.utime(file, ns=(now, now))
    assert Plan.read(file).sweep == "olo"


def test_compute_is_told_in_the_unit_of_the_plans_clock():
    assert PLAN.hours_text(80000.0) == "80000 GPU-hours"
    assert replace(PLAN, compute_name="measured device-hours").hours_text(0.0123456) == "0.01235 device-hours"


def test_the_ceiling_of_a_sweep_is_that_of_its_fits_and_a_plan_without_one_has_none(tmp_path):
    replace(PLAN, fit={"ceiling": 0.83}).write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json").fit_settings.ceiling == 0.83
    assert replace(PLAN, fit={"r0": "fixed", "loss": "squares"}).fit_settings.ceiling is None
    (tmp_path / "plan.json").write_text(json.dumps(asdict(PLAN) | {"fit": {"ceiling": 83}}))
    with pytest.raises(AblationsError, match="ceiling: Input should be less than or equal to 1"):
        Plan.read(tmp_path / "plan.json")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not a plan"),
        ('{"sweep": "loo"}', "'variants'"),
        ('{"variants": [], "colour": 1}', "colour"),
        ("[1]", "keys"),
        (json.dumps(asdict(PLAN) | {"budget_gpu_hours": "much"}), "budget_gpu_hours: Input should be a valid number"),
    ],
)
def test_a_broken_plan_is_refused_with_the_reason(tmp_path, content, reason):
    (tmp_path / "plan.json").write_text(content)
    with pytest.raises(AblationsError, match=reason):
        Plan.read(tmp_path / "plan.json")
