"""Learning rates by hand, and what a horizon does to a run."""

import math

import pytest
from pydantic import ValidationError
from trainer.learner_cases import random_groups
from trainer.tiny import random_policy, tiny_recipe

from scalerl.learner.learning_rate import cosine_fall, learning_rate, linear_fall
from scalerl.learner.torch_learner import TorchLearner
from scalerl.recipe import Optimiser, ResolvedRecipe
from scalerl.run.run_folder import RunFolder
from scalerl.run.train import train


def rates(steps, compute=None, warmup_steps=0, **schedule):
    optimiser = Optimiser.model_validate({"learning_rate": 2.0, "warmup_steps": warmup_steps, "schedule": schedule})
    compute = compute or [None] * len(steps)
    return [learning_rate(optimiser, step=s, compute=c) for s, c in zip(steps, compute, strict=True)]


def test_a_constant_schedule_stays_at_the_peak_after_warm_up():
    assert rates(range(6), type="constant", warmup_steps=4) == pytest.approx([0.5, 1, 1.5, 2, 2, 2])


def test_half_a_cosine_from_one_to_zero():
    assert [cosine_fall(x) for x in (0, 1 / 3, 0.5, 2 / 3, 1)] == pytest.approx([1, 0.75, 0.5, 0.25, 0], abs=1e-12)


def test_cosine_falls_to_its_final_share_and_stays_there():
    # final 0.1: 0.1 + 0.9 x 0.75 at a third of the horizon, 0.1 + 0.9 x 0.5 at half of it, 0.1 from its end on.
    result = rates([0, 10, 15, 30, 300], type="cosine", horizon=30, unit="steps", final=0.1)
    assert result == pytest.approx([2, 2 * 0.775, 2 * 0.55, 0.2, 0.2])


def test_linear_falls_in_a_straight_line():
    assert [linear_fall(x) for x in (0, 0.25, 1)] == [1, 0.75, 0]
    result = rates([0, 10, 15, 30, 300], type="linear", horizon=30, unit="steps", final=0.1)
    assert result == pytest.approx([2, 2 * 0.7, 2 * 0.55, 0.2, 0.2])


def test_warm_up_multiplies_the_schedule():
    result = rates(range(5), type="linear", horizon=10, unit="steps", warmup_steps=4)
    assert result == pytest.approx([0.25 * 2, 0.5 * 1.8, 0.75 * 1.6, 1.4, 1.2])


def test_a_horizon_in_compute_looks_at_compute_and_not_at_steps():
    result = rates([7, 8, 900], compute=[0.0, 1.0, 2.0], type="cosine", horizon=2.0)
    assert result == pytest.approx([2, 1, 0], abs=1e-12)


def test_a_horizon_in_compute_without_a_clock_is_an_error():
    with pytest.raises(ValueError, match=r"horizon of 2 is in compute.*unit: steps"):
        rates([0], type="cosine", horizon=2.0)


def test_the_learner_takes_compute_in_the_units_of_the_scale():
    # compute_unit_gpu_hours is 1 in the tiny recipe; 8 makes 2 GPU-hours a quarter of a unit, an eighth of the horizon.
    schedule = {"type": "cosine", "horizon": 2.0, "final": 0.0}
    recipe = tiny_recipe(
        compute_unit_gpu_hours=8.0, optimiser={"learning_rate": 1e-3, "warmup_steps": 0, "schedule": schedule}
    )
    policy = random_policy(recipe)
    learner = TorchLearner(policy, recipe)
    update = learner.step(random_groups(policy), compute_gpu_hours=2.0)
    expected = 1e-3 * (1 + math.cos(math.pi / 8)) / 2
    assert update.metrics["learning_rate"] == pytest.approx(expected, rel=1e-12)
    assert learner.engine.adam.param_groups[0]["lr"] == update.metrics["learning_rate"]


def test_the_horizon_is_part_of_what_a_run_is():
    def identity(**schedule):
        return ResolvedRecipe.model_validate({"optimiser": {"schedule": schedule}}).identity(seed=0)

    written = [
        identity(type="constant"),
        identity(type="cosine"),
        identity(type="cosine", horizon=2.0),
        identity(type="cosine", horizon=2.0, final=0.1),
        identity(type="linear", horizon=2.0),
        identity(type="linear", horizon=2000, unit="steps"),
    ]
    assert len(set(written)) == len(written)
    assert identity(type="cosine") == identity(type="cosine", horizon=1, unit="compute", final=0)


def test_a_horizon_inside_warm_up_is_refused():
    with pytest.raises(ValidationError, match=r"horizon 100 steps must come after warm-up, which takes 100"):
        ResolvedRecipe.model_validate({"optimiser": {"schedule": {"type": "cosine", "horizon": 100, "unit": "steps"}}})


@pytest.mark.parametrize("wrong", [{"final": 1.0}, {"final": -0.1}, {"horizon": 0}, {"unit": "hours"}])
def test_a_schedule_out_of_bounds_is_refused(wrong):
    with pytest.raises(ValidationError):
        ResolvedRecipe.model_validate({"optimiser": {"schedule": {"type": "linear", **wrong}}})


def test_a_constant_schedule_has_no_horizon():
    with pytest.raises(ValidationError, match="horizon"):
        ResolvedRecipe.model_validate({"optimiser": {"schedule": {"type": "constant", "horizon": 1.0}}})


def test_a_run_whose_rate_would_be_0_before_its_budget_ends_says_so_and_trains_nothing(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create(tiny_recipe(optimiser={"schedule": {"type": "cosine", "horizon": 2.0}}), 0)
    with pytest.raises(ValueError, match=r"horizon 2 is below the budget of 3"):
        train(folder.path, budget_gpu_hours=3.0, warm_starts=tmp_path)
    status = folder.read_status()
    assert status.state == "failed"
    assert "budget of at most 2" in status.message
    assert not folder.metrics.exists()
