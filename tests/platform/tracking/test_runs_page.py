"""`platform mlflow` says where the runs of the newest sweep are, and MLflow adds nothing to it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from urllib.request import urlopen

import pytest
from fixtures_home import changed, make_home
from typer.testing import CliRunner
from waiting import wait_until

import ablations.cli.serve
from ablations.cli import app
from ablations.tracking.runs_page import runs_page_url
from ablations.tracking.synchroniser import push_sweep


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
    sweep = make_home(tmp_path)
    assert said(tmp_path) == f"MLflow of {tmp_path}, in some seconds: http://127.0.0.1:5123"
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    assert push_sweep(sweep).reason == ""
    changed(sweep, sweep="newer").write_plan()  # never pushed
    runs = "http://127.0.0.1:5123/#/experiments/1/runs?workflowType=machine_learning&viewStateShareKey=ablations"
    assert said(tmp_path) == f"MLflow of {tmp_path}, in some seconds: {runs}"
    assert started[-1][2:4] == ["mlflow", "ui"]


def test_an_experiment_without_a_view_is_opened_without_its_key():
    assert (
        runs_page_url("http://h:1", "7", has_view=False)
        == "http://h:1/#/experiments/7/runs?workflowType=machine_learning"
    )


@pytest.mark.slow
def test_mlflow_prints_no_warning_beside_the_url(tmp_path, empty_store):
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "ablations.cli", "mlflow", f"--port={port}", f"--home={tmp_path}"]
    with (tmp_path / "said").open("w") as output:
        # A process group of its own, so that the workers end with it.
        server = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        wait_until(lambda: is_healthy(port), "MLflow", process=server)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()
    url, *others = (tmp_path / "said").read_text().splitlines()
    assert url == f"MLflow of {tmp_path}, in some seconds: http://127.0.0.1:{port}"
    assert [line for line in others if not line.startswith("[MLflow] Security middleware enabled")] == []


def is_healthy(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False
