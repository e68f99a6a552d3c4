"""Runs with too few readings for a fit are refused, with the place in the file and what would be right."""

import math

import pytest
from fixtures_design import study_of
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import FileError
from ablations.study.fittable import num_fittable, too_few_readings

STEP = 0.001
"""Compute between two optimiser steps: a reading is taken at the first step after it is due."""


def counted_one_by_one(budget, every, fit_from, fit_on):
    """The loop of the trainer, and the window that results are read with."""
    taken, due, step = [], 1, 0
    while True:
        step += 1
        compute = step * STEP + STEP / 3
        if compute >= due * every:
            taken.append(compute)
            due = math.floor(compute / every) + 1
        if compute >= budget:
            break
    end = next((one for one in taken if one >= fit_on * budget), fit_on * budget)
    return sum(fit_from * budget < one <= end for one in taken)


@pytest.mark.parametrize(
    ("budget", "every", "fit_from", "fit_on"),
    [(1.0, 0.05, 0.0, 1.0), (1.0, 0.1, 0.0, 0.5), (0.7, 0.1, 0.0, 1.0), (1.0, 0.03, 0.1, 0.55), (0.5, 0.2, 0.0, 1.0)],
)
def test_readings_are_counted_as_the_trainer_takes_them(budget, every, fit_from, fit_on):
    found = num_fittable(budget=budget, every=every, fit_from=fit_from, fit_on=fit_on)
    assert found == counted_one_by_one(budget, every, fit_from, fit_on)


def test_what_would_be_right_is_right(tmp_path):
    study = study_of(tmp_path, more="budget: {compute: 0.6, fit_from: 0.35, fit_on: 0.65}\n")
    problem = too_few_readings(study)
    assert str(problem).startswith(f"{tmp_path / 'before.yaml'}:6: budget.compute: found 0.6: evaluated every 0.05, a ")
    said = "between fit_from 0.35 and fit_on 0.65; a fit needs 6; must be at least 1, or evaluation.every at most 0.03"
    assert str(problem).endswith(said)
    window = {"fit_from": 0.35, "fit_on": 0.65}
    assert num_fittable(budget=1.0, every=0.05, **window) >= 6
    assert num_fittable(budget=0.6, every=0.03, **window) >= 6


def test_a_sweep_and_its_dry_run_are_refused_before_anything_trains(tmp_path):
    study_of(tmp_path, more="budget: {compute: 0.25}\n")
    file, home = str(tmp_path / "before.yaml"), str(tmp_path / "home")
    checked = CliRunner().invoke(app, ["check", file, "--quick"])
    assert checked.exit_code == 1
    assert "a run has 5 evaluations after step 0" in " ".join(checked.stdout.split())
    for options in ((), ("--dry-run",)):
        result = CliRunner().invoke(app, ["sweep", file, "--home", home, *options])
        assert isinstance(result.exception, FileError)
        assert "a run has 5 evaluations after step 0; a fit needs 6" in str(result.exception)
    assert not (tmp_path / "home").exists()


def test_a_shorter_budget_on_the_command_line_is_a_first_leg_and_gets_a_warning(tmp_path):
    study_of(tmp_path)
    arguments = f"sweep {tmp_path}/before.yaml --budget 0.2 --dry-run --home {tmp_path}/home"
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert "warning: " in result.stdout
    assert "found 0.2: evaluated every 0.05, a run has 4 evaluations after step 0" in result.stdout
