"""Learning rates by hand, and what a horizon does to a run."""

import math

import pytest
from pydantic import ValidationError
from trainer.learner_cases import random_groups
from trainer.tiny import random_policy, tiny_recipe

from scalerl.learner.learning_rate import learning_rate
from scalerl.learner.torch_learner import TorchLearner
from scalerl.recipe import Optimiser, ResolvedRecipe
from scalerl.run.run_folder import RunFolder
from scalerl.run.train import train


def rates(steps, compute=None, warmup_steps=0, **schedule):
    optimiser = Optimiser.model_validate({"learning_rate": 2.0, "warmup_steps": warmup_steps, "schedule": schedule})
    compute = compute or [None] * len(steps)
    return [learning_rate(optimiser, step=s, compute=c) for s, c in zip(steps, compute, strict=True)]


HORIZON = {"horizon": 30, "unit": "steps", "final": 0.1}


@pytest.mark.parametrize(
    ("schedule", "steps", "expected"),
    [
        ({"type": "constant", "warmup_steps": 4}, range(6), [0.5, 1, 1.5, 2, 2, 2]),
        # final 0.1: 0.1 + 0.9 x 0.75 at a third of the horizon, 0.1 + 0.9 x 0.5 at half of it, 0.1 from its end on.
        ({"type": "cosine", **HORIZON}, [0, 10, 15, 30, 300], [2, 2 * 0.775, 2 * 0.55, 0.2, 0.2]),
        ({"type": "linear", **HORIZON}, [0, 10, 15, 30, 300], [2, 2 * 0.7, 2 * 0.55, 0.2, 0.2]),
        (
            {"type": "linear", "horizon": 10, "unit": "steps", "warmup_steps": 4},
            range(5),
            [0.25 * 2, 0.5 * 1.8, 0.75 * 1.6, 1.4, 1.2],
        ),
    ],
)
def test_rates_by_hand(schedule, steps, expected):
    assert rates(steps, **schedule) == pytest.approx(expected)


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


def test_a_horizon_inside_warm_up_is_refused():
    with pytest.raises(ValidationError, match=r"horizon 100 steps must come after warm-up, which takes 100"):
        ResolvedRecipe.model_validate({"optimiser": {"schedule": {"type": "cosine", "horizon": 100, "unit": "steps"}}})


def test_a_run_whose_rate_would_be_0_before_its_budget_ends_says_so_and_trains_nothing(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create(tiny_recipe(optimiser={"schedule": {"type": "cosine", "horizon": 2.0}}), 0)
    with pytest.raises(ValueError, match=r"horizon 2 is below the budget of 3"):
        train(folder.path, budget_gpu_hours=3.0, warm_starts=tmp_path)
    status = folder.read_status()
    assert status.state == "failed"
    assert "budget of at most 2" in status.message
    assert not folder.metrics.exists()
