"""Runs with too few readings for a fit are refused, with the place in the file and what would be right."""

import math

import pytest
from fixtures_design import study_of
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import FileError
from ablations.study.fittable import num_fittable, readings_before, too_few_readings

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


def test_a_budget_of_whole_intervals_has_them_all():
    assert readings_before(0.7, 0.1) == 7  # 0.7 / 0.1 is 6.999999999999999


def test_what_is_refused_names_its_line_and_what_would_be_right(tmp_path):
    problem = too_few_readings(study_of(tmp_path, more="budget: {compute: 0.25}\n"))
    assert str(problem) == (
        f"{tmp_path / 'before.yaml'}:6: budget.compute: found 0.25: evaluated every 0.05, a run has 5 evaluations "
        "after step 0; a fit needs 6; must be at least 0.3, or evaluation.every at most 0.0416"
    )


def test_what_would_be_right_is_right(tmp_path):
    study = study_of(tmp_path, more="budget: {compute: 0.6, fit_from: 0.35, fit_on: 0.65}\n")
    problem = too_few_readings(study)
    said = "between fit_from 0.35 and fit_on 0.65; a fit needs 6; must be at least 1, or evaluation.every at most 0.03"
    assert str(problem).endswith(said)
    window = {"fit_from": 0.35, "fit_on": 0.65}
    assert num_fittable(budget=1.0, every=0.05, **window) >= 6
    assert num_fittable(budget=0.6, every=0.03, **window) >= 6


def test_a_file_without_a_budget_has_the_place_of_its_top(tmp_path):
    study = study_of(tmp_path)
    assert too_few_readings(study) is None
    assert str(too_few_readings(study, 0.2)).startswith(f"{tmp_path / 'before.yaml'}:1: budget.compute: found 0.2")


def test_a_sweep_and_its_dry_run_are_refused_before_anything_trains(tmp_path):
    study_of(tmp_path, more="budget: {compute: 0.25}\n")
    for options in ((), ("--dry-run",)):
        result = CliRunner().invoke(
            app, ["sweep", str(tmp_path / "before.yaml"), "--home", str(tmp_path / "home"), *options]
        )
        assert isinstance(result.exception, FileError)
        assert "a run has 5 evaluations after step 0; a fit needs 6" in str(result.exception)
    assert not (tmp_path / "home").exists()


def test_a_check_lists_it_with_the_others(tmp_path):
    study_of(tmp_path, more="budget: {compute: 0.25}\n")
    result = CliRunner().invoke(app, ["check", str(tmp_path / "before.yaml"), "--quick"])
    assert result.exit_code == 1
    assert "a run has 5 evaluations after step 0" in " ".join(result.stdout.split())


def test_a_shorter_budget_on_the_command_line_is_a_first_leg_and_gets_a_warning(tmp_path):
    study_of(tmp_path)
    arguments = [
        "sweep",
        str(tmp_path / "before.yaml"),
        "--budget",
        "0.2",
        "--dry-run",
        "--home",
        str(tmp_path / "home"),
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert "warning: " in result.stdout
    assert "found 0.2: evaluated every 0.05, a run has 4 evaluations after step 0" in result.stdout
