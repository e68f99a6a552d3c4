"""A forecast is kept until anything that it depends on changes."""

import json
import os
from dataclasses import replace

import pytest
from fixtures_home import make_home
from typer.testing import CliRunner

from ablations.cli import app
from ablations.findings import kept_forecast, sweep_forecast
from ablations.findings.kept_forecast import FORECASTS
from ablations.home.notes import NoteSubject


@pytest.fixture
def sweep(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1))
    rest(sweep)
    return sweep


@pytest.fixture
def made(monkeypatch):
    """The budgets of forecasts that were made and not read from a file."""
    found, real = [], sweep_forecast.forecast_sweep

    def counted(results, **options):
        found.append(options["budgets_gpu_hours"])
        return real(results, **options)

    monkeypatch.setattr(sweep_forecast, "forecast_sweep", counted)
    return found


def rest(sweep) -> None:
    """Set all files back by a minute, in steps, so that a later change shows."""
    for path in sweep.home.path.rglob("*"):
        if path.is_file():
            of_file = path.stat()
            os.utime(path, ns=(of_file.st_atime_ns, of_file.st_mtime_ns - 60 * 10**9))


def forecast(sweep, *options: str) -> dict:
    done = CliRunner().invoke(app, ["forecast", sweep.name, "--home", str(sweep.home.path), "--json", *options])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def add_reading(sweep, run_id: str, pass_rate: float) -> None:
    """An evaluation of another task at the compute of the last one, as an evaluator adds it."""
    path = sweep.home.run(run_id).metrics
    last = [row for line in path.read_text().splitlines() if (row := json.loads(line))["kind"] == "eval"][-1]
    with path.open("a") as file:
        file.write(json.dumps(last | {"kind": "downstream", "task": "other", "pass_rate": pass_rate}) + "\n")


def test_a_forecast_is_made_once_for_each_budget(sweep, made):
    first = forecast(sweep)
    assert forecast(sweep) == first
    assert len(made) == 1
    other = forecast(sweep, "--budget", "3x", "--score", "0.5")
    assert other["budgets_gpu_hours"] != first["budgets_gpu_hours"]
    assert len(made) == 2
    assert forecast(sweep, "--budget", "3x", "--score", "0.5") == other
    assert len(made) == 2


def test_whatever_a_forecast_depends_on_makes_it_anew(sweep, made, monkeypatch):
    known = {json.dumps(forecast(sweep))}

    def is_made_anew() -> None:
        before = len(made)
        rest(sweep)
        known.add(json.dumps(forecast(sweep)))
        assert len(made) == before + 1
        forecast(sweep)
        assert len(made) == before + 1

    (first, *_) = sweep.plan.runs
    add_reading(sweep, first.id, 0.4)
    is_made_anew()
    # An edit that keeps the size of a log changes its time.
    log = sweep.home.run(first.id).metrics
    log.write_text(log.read_text().replace('"task": "other"', '"task": "rehto"'))
    is_made_anew()
    # Another sweep of the same runs.
    other = replace(sweep, plan=replace(sweep.plan, sweep="again"))
    other.folder.mkdir()
    other.write_plan()
    is_made_anew()
    # A run of another sweep, from which the run-to-run spread is learned.
    add_reading(sweep, sweep.plan.runs[-1].id, 0.2)
    is_made_anew()
    # Another plan, and another version of the method.
    replace(sweep, plan=replace(sweep.plan, budget_gpu_hours=sweep.plan.budget_gpu_hours / 2)).write_plan()
    is_made_anew()
    assert len(known) > 1
    monkeypatch.setattr(kept_forecast, "_code_of_forecasts", lambda: "another version")
    is_made_anew()


def test_a_damaged_or_missing_file_is_made_again_and_a_folder_that_cannot_be_written_is_no_error(sweep, made):
    first = forecast(sweep)
    (path,) = (sweep.folder / FORECASTS).glob("*.msgpack")
    for damaged in (b"", b"garbage", path.read_bytes()[:-100]):
        path.write_bytes(damaged)
        assert forecast(sweep) == first
    assert len(made) == 4
    path.unlink()
    path.parent.rmdir()
    path.parent.touch()  # a file in the place of the folder
    assert forecast(sweep) == first
    assert len(made) == 5


def test_a_forecast_is_not_kept_while_a_log_is_written(sweep, made):
    add_reading(sweep, sweep.plan.runs[0].id, 0.4)
    os.utime(sweep.home.run(sweep.plan.runs[0].id).metrics, (4e9, 4e9))
    assert forecast(sweep) == forecast(sweep)
    assert len(made) == 2


def test_notes_do_not_make_a_forecast_anew(sweep, made):
    forecast(sweep)
    NoteSubject(home=sweep.home, folder=sweep.folder).add(text="for the rebuttal", at=1.0)
    NoteSubject(home=sweep.home, folder=sweep.run(sweep.plan.runs[0].id).path).add(tags=("keep",), at=1.0)
    forecast(sweep)
    assert len(made) == 1
