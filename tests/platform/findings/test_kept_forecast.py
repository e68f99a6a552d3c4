"""Forecasts kept beside the sweep: equal to those that are made, and made again once anything behind them changes."""

import json
from dataclasses import replace
from typing import Any

import pytest
from fixtures_home import BUDGET, changed, make_home, planned_run
from typer.testing import CliRunner

import ablations.findings.sweep_forecast as kept
from ablations.cli import app
from ablations.findings.results import read_results
from ablations.findings.sweep_forecast import forecast_sweep, kept_forecast
from ablations.report.forecast import forecast_figure


@pytest.fixture
def sweep(tmp_path):
    return make_home(tmp_path, seeds=(0, 1))


def files(sweep):
    return sorted(path.name for path in (sweep.folder / "forecasts").glob("*"))


def refuse(*_args, **_options):
    raise AssertionError("the forecast is made again")


def test_a_forecast_is_made_once_and_read_to_the_last_digit(monkeypatch, sweep):
    results = read_results(sweep)
    made = kept_forecast(results, budgets_gpu_hours=[2 * BUDGET], score=0.5)
    assert made == forecast_sweep(results, budgets_gpu_hours=[2 * BUDGET], score=0.5)
    assert len(files(sweep)) == 1
    figure = forecast_figure(results).to_json()
    monkeypatch.setattr(kept, "forecast_sweep", refuse)
    monkeypatch.setattr(kept, "estimated", refuse)
    monkeypatch.setattr(kept, "joint_draws", refuse)
    again = read_results(sweep)  # with the fits as they were kept
    assert kept_forecast(again, budgets_gpu_hours=[2 * BUDGET], score=0.5) == made
    assert forecast_figure(again).to_json() == figure


def test_another_question_baseline_or_reading_makes_another_forecast(sweep):
    def kept_after(results, **asked):
        options: dict[str, Any] = {"budgets_gpu_hours": [2 * BUDGET]} | asked
        kept_forecast(results, **options)
        return len(files(sweep))

    results = read_results(sweep)
    assert kept_after(results) == 1
    assert kept_after(results) == 1
    assert kept_after(results, budgets_gpu_hours=[3 * BUDGET]) == 2
    assert kept_after(results, score=0.5) == 3
    assert kept_after(read_results(changed(sweep, reference="loo-loss"))) == 4
    assert kept_after(replace(results, variants=results.variants[:2])) == 5
    log = sweep.run(planned_run("scalerl", 0).id).metrics
    lines = log.read_text().splitlines()
    row = json.loads(lines[-1])
    log.write_text("\n".join([*lines[:-1], json.dumps(row | {"pass_rate": row["pass_rate"] - 0.01})]) + "\n")
    assert kept_after(read_results(changed(sweep, fit_to_gpu_hours=BUDGET))) == 6


def test_a_forecast_that_cannot_be_kept_is_said_once_and_is_the_same(sweep):
    (sweep.folder / "forecasts").touch()
    result = CliRunner().invoke(app, ["forecast", "--home", str(sweep.home.path)])
    assert result.exit_code == 0, result.output
    assert result.stderr == (
        f"warning: The forecast is not cached because {sweep.folder} is not writable (File exists); "
        "every forecast is made again.\n"
    )
    (sweep.folder / "forecasts").unlink()
    again = CliRunner().invoke(app, ["forecast", "--home", str(sweep.home.path)])
    assert (again.stderr, again.stdout) == ("", result.stdout)
    assert len(files(sweep)) == 1
