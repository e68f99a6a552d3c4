"""A synchroniser that is killed (SIGKILL) in a transaction leaves no row twice and none out, in a real SQLite store."""

import json
import signal
import subprocess
import sys

from fixtures_home import make_home, write_state

from ablations.tracking.push_missing import push_sweep
from ablations.tracking.sync_note import default_tracking_uri, is_current

PUSH = """
import os, signal, sys
from pathlib import Path
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.tracking import mlflow_experiment, push_missing
from sqlalchemy import event
from sqlalchemy.engine import Engine

mlflow_experiment.MAX_BATCH_POINTS = 150
left = [4]

def strike():
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)

def seen(connection, cursor, statement, *rest):
    if statement.startswith("INSERT OR IGNORE INTO metrics"):
        strike()

event.listen(Engine, "after_cursor_execute", seen)
push_missing.push_sweep(read_sweep(Home(Path(sys.argv[1])), "loo"))
"""


def test_a_push_that_is_killed_in_a_transaction_leaves_no_row_twice_and_none_out(tmp_path):
    from mlflow import MlflowClient

    sweep = make_home(tmp_path / "home", state="done")
    home = sweep.home
    killed = subprocess.run([sys.executable, "-c", PUSH, str(home.path)], capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    for run in sweep.plan.runs:
        write_state(home, run.id, "running")  # so that nothing is fitted here
    report = push_sweep(sweep)
    assert (report.rows_left, report.reason) == (0, "")
    assert is_current(sweep, None)

    client = MlflowClient(default_tracking_uri(home))
    experiment = client.get_experiment_by_name("loo")
    assert experiment is not None
    runs = {run.info.run_name: run.info.run_id for run in client.search_runs([experiment.experiment_id])}
    assert len(client.search_runs([experiment.experiment_id])) == len(runs) == 6
    for variant in sweep.plan.variants:
        mlflow_id = runs[f"{variant.name} seed 0"]
        rows = [json.loads(line) for line in home.run(variant.runs[0].id).metrics.read_text().splitlines()]
        steps = [row["step"] for row in rows if row["kind"] == "train"]
        kept = [step for step in steps if step < 64 or step % 2 == 0]
        assert [point.step for point in client.get_metric_history(mlflow_id, "train/loss")] == kept
        rates = [(row["step"], row["pass_rate"]) for row in rows if row["kind"] == "eval"]
        history = client.get_metric_history(mlflow_id, "eval/pass_rate")
        assert [(point.step, point.value) for point in history] == rates
        assert {file.path for file in client.list_artifacts(mlflow_id)} == {"recipe.json"}
