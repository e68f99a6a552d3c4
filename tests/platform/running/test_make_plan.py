"""A learning rate that is 0 before the budget is spent is refused where the budget is given."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.running.make_plan import make_plan
from ablations.study.expand import expand

SWEEP = """
name: schedules
reference: scalerl
seeds: [0]
scale: smoke
variants:
  falling: {{optimiser.schedule: {schedule}}}
budget: {{compute: 0.5}}
"""


def plan(folder: Path, schedule: str, budget: float | None = None) -> None:
    path = folder / "schedules.yaml"
    path.write_text(SWEEP.format(schedule=schedule))
    make_plan(expand(path), "schedules", budget=budget, command="platform sweep schedules.yaml")


def test_a_sweep_names_the_variant_its_horizon_the_budget_and_what_would_be_right(tmp_path):
    said = (
        "sweep 'schedules', variant 'falling': optimiser.schedule.horizon 0.4 is below the budget of 0.5: the "
        "learning rate is 0 after the horizon, so later steps have no effect; use a horizon of at least 0.5, "
        "a final share above 0, or a budget of at most 0.4"
    )
    with pytest.raises(AblationsError, match=re.escape(said)):
        plan(tmp_path, "{type: linear, horizon: 0.4}")


@pytest.mark.parametrize(
    "schedule",
    [
        "{type: cosine, horizon: 0.5}",
        "{type: cosine, horizon: 0.4, final: 0.1}",
        "{type: linear, horizon: 30, unit: steps}",
    ],
)
def test_schedules_that_move_something_to_the_end_are_taken(tmp_path, schedule):
    plan(tmp_path, schedule)


def test_a_budget_on_the_command_line_counts(tmp_path):
    plan(tmp_path, "{type: cosine, horizon: 0.3}", budget=0.1 + 0.2)  # equal up to rounding
    with pytest.raises(AblationsError, match=r"is below the budget of 0\.6"):
        plan(tmp_path, "{type: cosine, horizon: 0.5}", budget=0.6)


def test_a_single_run_is_refused_before_its_folder_is_made(tmp_path):
    schedule = "optimiser.schedule={type: linear, horizon: 0.2}"
    arguments = ["train", "scalerl", "--scale", "smoke", "--budget", "0.3", "--set", schedule, "--home", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, AblationsError)
    assert "recipe scalerl: optimiser.schedule.horizon 0.2 is below the budget of 0.3" in str(result.exception)
    assert not list(tmp_path.iterdir())
