"""MLflow gets every row once, whatever becomes of the synchroniser, its notes or the server."""

import json
import shutil
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from filelock import FileLock
from fixtures_home import BUDGET, HEARTBEAT, TRUTH, make_home, planned_run, write_run, write_state

from ablations import tracking
from ablations.home import Home
from ablations.plan import Plan
from ablations.tracking import is_current, sync

NUM_ROWS = 41 + 80
"""Of one finished run: an evaluation every 50 of 2000 GPU-hours and at 0, a step every 25."""
HALF_ROWS = 21 + 40


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory):
    """An MLflow store with its tables and nothing else: making one takes seconds."""
    from mlflow import MlflowClient

    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def running(tmp_path, empty_store):
    """A home folder with a running sweep, whose fits nobody waits for, and an empty store."""
    home, plan = make_home(tmp_path / "home", state="running")
    shutil.copy(empty_store, home.path / "mlflow.db")
    return home, plan


@pytest.fixture
def finished(running):
    """The same, finished."""
    home, plan = running
    finish(home, plan)
    return home, plan


def finish(home: Home, plan: Plan) -> None:
    """Every run is done."""
    for variant in plan.variants:
        for run in variant.runs:
            write_state(home, run.id, "done")


def client_of(home: Home):
    """A client of the home folder's store."""
    from mlflow import MlflowClient

    return MlflowClient(tracking.default_tracking_uri(home))


def runs_of(home: Home, sweep: str = "loo"):
    """All MLflow runs of a sweep by name."""
    client = client_of(home)
    found = client.search_runs([client.get_experiment_by_name(sweep).experiment_id])
    assert len({run.info.run_name for run in found}) == len(found)
    return {run.info.run_name: run for run in found}


def assert_each_row_is_there_once(home: Home, plan: Plan):
    """Every row of every run log is in MLflow, once."""
    client, runs = client_of(home), runs_of(home)
    for variant in plan.variants:
        for run in variant.runs:
            rows = [json.loads(line) for line in home.run(run.id).metrics.read_text().splitlines()]
            for kind, metric in (("eval", "pass_rate"), ("train", "entropy"), ("train", "compute_gpu_hours")):
                mlflow_id = runs[f"{variant.name} seed {run.seed}"].info.run_id
                history = client.get_metric_history(mlflow_id, f"{kind}/{metric}")
                expected = [(row["step"], row[metric]) for row in rows if row["kind"] == kind]
                assert sorted((point.step, point.value) for point in history) == expected


def test_a_sweep_becomes_an_experiment_of_parents_and_children(running):
    home, plan = running
    report = sync(home.path, "loo")
    assert (report.rows_pushed, report.rows_left, report.reason) == (3 * NUM_ROWS, 0, "")
    runs = runs_of(home)
    assert set(runs) == {name for variant in TRUTH for name in (variant, f"{variant} seed 0")}
    assert runs["loo-loss"].data.params == {"loss.type": "dapo"}
    assert runs["loo-loss seed 0"].data.tags["mlflow.parentRunId"] == runs["loo-loss"].info.run_id
    assert runs["loo-loss seed 0"].data.params["loss.max_ratio"] == "5.0"
    assert_each_row_is_there_once(home, plan)


def test_a_finished_variant_has_its_fit_verdict_and_figure(finished):
    home, _ = finished
    sync(home.path, "loo")
    parent = runs_of(home)["loo-loss"]
    assert parent.data.metrics["A"] == pytest.approx(TRUTH["loo-loss"][0], abs=0.01)
    assert parent.data.metrics["A_lo"] < TRUTH["loo-loss"][0] < parent.data.metrics["A_hi"]
    assert parent.data.metrics["cost_gpu_hours"] == BUDGET
    assert parent.data.tags["ablations.verdict"] == "resolved; ceiling down"
    assert (parent.info.status, parent.info.end_time) == ("FINISHED", 1000 * HEARTBEAT)
    (artifact,) = client_of(home).list_artifacts(parent.info.run_id)
    assert artifact.path == "curve.html"
    assert parent.info.artifact_uri.startswith((home.path / "mlartifacts").as_uri())


def test_a_running_variant_has_no_fit_yet(running):
    home, _ = running
    sync(home.path, "loo")
    runs = runs_of(home)
    assert "A" not in runs["loo-loss"].data.metrics
    assert runs["loo-loss"].info.status == "RUNNING"
    assert runs["loo-loss seed 0"].info.status == "RUNNING"


def test_a_variant_is_compared_only_when_the_reference_has_ended_too(finished):
    home, _ = finished
    write_state(home, planned_run("scalerl", 0).id, "running")
    sync(home.path, "loo")
    assert runs_of(home)["loo-loss"].data.metrics == {}
    write_state(home, planned_run("scalerl", 0).id, "done")
    assert not is_current(home.path, "loo")
    sync(home.path, "loo")
    assert runs_of(home)["loo-loss"].data.metrics["delta_A"] == pytest.approx(0.54 - 0.61, abs=0.015)


def test_a_second_sync_pushes_nothing(finished):
    home, plan = finished
    sync(home.path, "loo")
    assert sync(home.path, "loo").rows_pushed == 0
    assert_each_row_is_there_once(home, plan)
    assert len(client_of(home).get_metric_history(runs_of(home)["scalerl"].info.run_id, "A")) == 1


def test_a_run_that_grows_is_pushed_from_where_it_was(tmp_path, empty_store):
    home, plan = make_home(tmp_path, fraction=0.5, state="running")
    shutil.copy(empty_store, home.path / "mlflow.db")
    assert sync(home.path, "loo").rows_pushed == 3 * HALF_ROWS
    for variant in plan.variants:
        shutil.rmtree(home.run(variant.runs[0].id).path)
        write_run(home, variant.runs[0].id, TRUTH[variant.name], state="cancelled" if variant.overrides else "done")
    assert not is_current(home.path, "loo")
    assert sync(home.path, "loo").rows_pushed == 3 * (NUM_ROWS - HALF_ROWS)
    assert_each_row_is_there_once(home, plan)
    assert runs_of(home)["scalerl seed 0"].info.status == "FINISHED"
    assert runs_of(home)["loo-loss seed 0"].info.status == "KILLED"


@pytest.mark.parametrize("after_the_push", [False, True])
def test_a_kill_at_a_batch_loses_and_doubles_nothing(running, monkeypatch, after_the_push):
    from mlflow import MlflowClient

    home, plan = running
    log_batch, calls = MlflowClient.log_batch, []

    def killed_at_the_sixth(self, run_id, metrics=(), **rest):
        calls.append(run_id)
        if len(calls) == 6 and not after_the_push:
            raise KeyboardInterrupt
        log_batch(self, run_id, metrics=metrics, **rest)
        if len(calls) == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(tracking, "MAX_BATCH_METRICS", 150)
    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_batch", killed_at_the_sixth)
        with pytest.raises(KeyboardInterrupt):
            sync(home.path, "loo")
    assert not is_current(home.path, "loo")
    assert sync(home.path, "loo").rows_left == 0
    assert_each_row_is_there_once(home, plan)


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_lost_notes_are_found_again_by_tag(running, content):
    home, plan = running
    sync(home.path, "loo")
    notes = home.sweep("loo") / "sync.json"
    notes.unlink()
    if content is not None:
        notes.write_text(content)
    assert not is_current(home.path, "loo")
    report = sync(home.path, "loo")
    assert (report.rows_pushed, report.rows_left) == (0, 0)
    assert is_current(home.path, "loo")
    assert_each_row_is_there_once(home, plan)


def test_a_variant_with_other_overrides_is_a_new_parent_of_the_same_runs(running):
    home, _ = running
    sync(home.path, "loo")
    path = home.sweep("loo") / "plan.json"
    path.write_text(path.read_text().replace('"loo-loss"', '"loo-dapo"'))
    assert sync(home.path, "loo").rows_pushed == 0
    runs = runs_of(home)
    assert runs["loo-loss seed 0"].data.tags["mlflow.parentRunId"] == runs["loo-dapo"].info.run_id


def test_what_is_known_here_says_whether_mlflow_is_current(finished):
    home, _ = finished
    assert not is_current(home.path, "loo")
    sync(home.path, "loo")
    assert is_current(home.path, "loo")
    with home.run(planned_run("scalerl", 0).id).metrics.open("a") as file:
        file.write('{"kind": "train", "step": 81, "loss": 0.1, "compute_gpu_hours": 2010.0, "wall_s": 201.0}\n')
    assert not is_current(home.path, "loo")


def test_a_corrupt_line_is_reported_and_the_other_runs_are_pushed(running):
    home, _ = running
    metrics = home.run(planned_run("scalerl", 0).id).metrics
    lines = metrics.read_text().splitlines(keepends=True)
    metrics.write_text("".join([*lines[:100], "{]\n", *lines[101:]]))
    report = sync(home.path, "loo")
    assert report.rows_pushed == 100 + 2 * NUM_ROWS
    assert report.rows_left == NUM_ROWS - 100
    assert "metrics.jsonl:101: not a metrics row" in report.reason


def test_a_dead_server_costs_seconds_and_no_row(tmp_path):
    home, _ = make_home(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = time.monotonic()
    report = sync(home.path, "loo", f"http://127.0.0.1:{port}")
    assert time.monotonic() - started < 10
    assert (report.rows_pushed, report.rows_left) == (0, 3 * NUM_ROWS)
    assert str(report).startswith(f"MLflow at http://127.0.0.1:{port}: pushed 0 rows, {3 * NUM_ROWS} left, because")


def test_a_server_that_never_answers_is_given_up(tmp_path, monkeypatch):
    home, _ = make_home(tmp_path)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        report = sync(home.path, "loo", f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert time.monotonic() - started < 10
    assert report.rows_left == 3 * NUM_ROWS
    assert "timed out" in report.reason


def test_a_full_server_is_reported(tmp_path):
    home, _ = make_home(tmp_path)

    class Full(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(507, "Insufficient Storage")
            self.end_headers()

        def log_message(self, format, *args):
            pass

    with HTTPServer(("127.0.0.1", 0), Full) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        report = sync(home.path, "loo", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert report.rows_left == 3 * NUM_ROWS
    assert "507" in report.reason


def test_two_synchronisers_never_push_the_same_sweep(running):
    home, _ = running
    with FileLock(home.sweep("loo") / "sync.lock"):
        report = sync(home.path, "loo")
    assert (report.rows_pushed, report.rows_left) == (0, 3 * NUM_ROWS)
    assert "another process" in report.reason
