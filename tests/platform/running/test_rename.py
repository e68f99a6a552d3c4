"""A sweep under another name: its readings stay kept, MLflow has it once, and nothing changes where it cannot be."""

import json
import shutil
from pathlib import Path

import pytest
from filelock import FileLock
from fixtures_home import make_home
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.findings.results import read_results
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.running import rename as renaming
from ablations.running.rename import rename_sweep
from ablations.slurm.submissions import new_submission, read_submissions
from ablations.tracking.ledger import default_tracking_uri, read_ledger
from ablations.tracking.synchroniser import push_sweep


@pytest.fixture
def pushed(tmp_path, empty_store):
    """A finished sweep that MLflow has."""
    sweep = make_home(tmp_path / "home")
    shutil.copy(empty_store, sweep.home.path / "mlflow.db")
    assert push_sweep(sweep).rows_left == 0
    return sweep


def experiments(sweep: StartedSweep) -> dict[str, list[str]]:
    """The experiments of the home folder's store, with the sweep that each of their runs names."""
    from mlflow import MlflowClient

    client = MlflowClient(default_tracking_uri(sweep.home))
    found = [one for one in client.search_experiments() if one.name != "Default"]
    return {one.name: [run.data.tags["sweep"] for run in client.search_runs([one.experiment_id])] for one in found}


def files(sweep: StartedSweep) -> set[Path]:
    """All of the home folder but locks."""
    return {path for path in sweep.home.path.rglob("*") if path.name != "lock" and path.suffix != ".lock"}


def refused(sweep: StartedSweep, name: str, said: str) -> None:
    """The name is refused, and all is as before."""
    before = files(sweep)
    with pytest.raises(AblationsError, match=said):
        rename_sweep(sweep, name)
    assert files(sweep) == before
    assert sweep.reread().plan == sweep.plan


def test_readings_stay_kept_and_mlflow_has_the_sweep_once_under_its_new_name(pushed):
    before = json.dumps(read_results(pushed).to_json() | {"sweep": ""})
    readings = {path: path.stat().st_mtime_ns for path in pushed.home.path.glob("runs/*/readings/*")}
    assert len(readings) == 3
    started = pushed.home.plan_file("loo").stat().st_mtime_ns
    result = CliRunner().invoke(app, ["rename", "loo", "losses", "--home", str(pushed.home.path)])
    assert result.exit_code == 0, result.output
    assert "Sweep 'loo' is now 'losses'." in result.stdout
    assert "is up to date" in result.stdout
    assert pushed.home.sweep_names() == ["losses"]
    assert pushed.home.plan_file("losses").stat().st_mtime_ns == started
    sweep = read_sweep(pushed.home, "losses")
    assert json.dumps(read_results(sweep).to_json() | {"sweep": ""}) == before
    assert {path: path.stat().st_mtime_ns for path in pushed.home.path.glob("runs/*/readings/*")} == readings
    assert experiments(sweep) == {"losses": ["losses"] * 6}
    assert read_ledger(sweep).is_current(sweep, None)
    assert [path.name for path in pushed.home.path.iterdir() if path.name.startswith(".")] == []


def test_a_rename_that_is_refused_or_interrupted_changes_nothing_and_goes_on(pushed, monkeypatch):
    from mlflow import MlflowClient

    MlflowClient(default_tracking_uri(pushed.home)).create_experiment("taken")
    refused(pushed, "taken", "MLflow at .* already has an experiment 'taken'; choose another name")
    ledger = pushed.folder / "sync.json"
    known = ledger.read_text()
    ledger.write_text(json.dumps(json.loads(known) | {"tracking_uri": "http://127.0.0.1:9"}))
    said = r"MLflow at http://127.0.0.1:9, which has this sweep, cannot rename it .*nothing was renamed"
    refused(pushed, "losses", said)
    ledger.write_text(known)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copytree", full)
    with pytest.raises(OSError, match="No space left"):
        rename_sweep(pushed, "losses")
    assert (pushed.home.sweep_names(), experiments(pushed)) == (["loo"], {"loo": ["loo"] * 6, "taken": []})
    monkeypatch.undo()
    # Interrupted after MLflow: the sweep has its old name, and the same command goes on.
    rename_in_mlflow = renaming._rename_in_mlflow
    monkeypatch.setattr(renaming, "_rename_in_mlflow", lambda *asked: rename_in_mlflow(*asked) and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        rename_sweep(pushed, "losses")
    assert pushed.home.sweep_names() == ["loo"]
    monkeypatch.undo()
    made = rename_sweep(pushed, "losses")
    assert push_sweep(made.sweep, made.tracking_uri).rows_pushed == 0
    assert experiments(made.sweep).keys() == {"losses", "taken"}


def test_a_sweep_that_trains_or_is_worked_on_keeps_its_name_and_so_does_one_whose_name_is_taken(tmp_path):
    sweep = make_home(tmp_path)
    with FileLock(sweep.lock):
        refused(sweep, "losses", "is still training or queued; run `platform cancel loo` first")
    with FileLock(sweep.folder / "sync.lock"):
        refused(sweep, "losses", "another command is using it or syncing it to MLflow")
    refused(sweep, "loo", "already has a sweep 'loo'")
    refused(sweep, "../losses", "is not a valid sweep name")


def test_what_was_given_to_slurm_goes_with_the_sweep_and_a_report_with_the_old_name_does_not(tmp_path):
    sweep = make_home(tmp_path)
    run = sweep.plan.runs[0].id
    new_submission("loo", (run,), 2000.0, tmp_path, {}).given("17").write(sweep.home)
    (sweep.folder / "report.html").write_text("loo")
    made = rename_sweep(sweep, "losses")
    assert (made.tracking_uri, made.had_report) == ("", True)
    (submission,) = read_submissions(sweep.home, "losses")
    assert (submission.sweep, submission.job, submission.runs) == ("losses", "17", (run,))
    assert not (made.sweep.folder / "report.html").exists()
    assert read_sweep(sweep.home, "losses").plan == made.sweep.plan
