"""`platform mlflow` says where the runs of the newest sweep are; that MLflow adds nothing to it is test_mlflow_page."""

import shutil

import pytest
from fixtures_home import changed, make_home
from typer.testing import CliRunner

import ablations.cli.serve
from ablations.cli import app
from ablations.tracking.push_missing import push_sweep


@pytest.fixture
def started(monkeypatch):
    """The commands that were to replace the process."""
    commands: list[list[str]] = []
    monkeypatch.setattr(ablations.cli.serve, "become", commands.append)
    for name in ablations.cli.serve.QUIET_MLFLOW:
        monkeypatch.setenv(name, "")  # the command sets them; undone at the end
        monkeypatch.delenv(name)
    return commands


def said(home) -> str:
    done = CliRunner().invoke(app, ["mlflow", "--port", "5123", "--home", str(home)])
    assert done.exit_code == 0, done.output
    return done.output.strip()


def test_the_url_is_of_the_newest_sweep_that_mlflow_has(tmp_path, empty_store, started):
    sweep = make_home(tmp_path, state="running")
    assert said(tmp_path) == f"MLflow of {tmp_path}, in a few seconds: http://127.0.0.1:5123"
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    assert push_sweep(sweep).reason == ""
    changed(sweep, sweep="newer").write_plan()  # never pushed
    runs = "http://127.0.0.1:5123/#/experiments/1/runs?workflowType=machine_learning&viewStateShareKey=ablations"
    assert said(tmp_path) == f"MLflow of {tmp_path}, in a few seconds: {runs}"
    assert started[-1][1:5] == ["-P", "-m", "mlflow", "ui"]
