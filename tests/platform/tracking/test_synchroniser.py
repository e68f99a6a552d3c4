"""MLflow gets every row once, whatever becomes of the synchroniser, its notes or the server."""

import contextlib
import dataclasses
import hashlib
import json
import math
import shutil
import sqlite3
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from filelock import FileLock
from fixtures_home import BUDGET, HEARTBEAT, TRUTH, make_home, make_plan, planned_run, write_run, write_state
from places import ODD_NAMES

from ablations.home.home import Home
from ablations.home.notes import NoteSubject
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.tracking import mlflow_experiment, sync_note
from ablations.tracking import push_missing as tracking
from ablations.tracking.mlflow_metrics import MetricPoint
from ablations.tracking.push_missing import SyncReport, push_sweep
from ablations.tracking.sqlite_points import SqlitePoints
from ablations.tracking.sync_note import default_tracking_uri, read_note
from scalerl.run.sealed_json import seal

NUM_ROWS = 41 + 80
"""Of one finished run: an evaluation every 50 of 2000 GPU-hours and at 0, a step every 25."""
HALF_ROWS = 21 + 40


@pytest.fixture
def running(tmp_path, empty_store):
    """A sweep that is running, so that nobody waits for its fits, and an empty store in its home folder."""
    sweep = make_home(tmp_path / "home", state="running")
    shutil.copy(empty_store, sweep.home.path / "mlflow.db")
    return sweep


@pytest.fixture
def done(running):
    """The same with every run done."""
    for run in running.plan.runs:
        write_state(running.home, run.id, "done")
    return running


@pytest.fixture
def finished(done, monkeypatch):
    """The same without pictures and report, which take longer than the rest."""
    for name in ("curves_picture", "differences_picture"):
        monkeypatch.setattr(tracking, name, lambda *_, **__: b"a picture")
    monkeypatch.setattr(tracking, "report_page", lambda *_, **__: "a report")
    return done


def sync(sweep: StartedSweep, uri: str | None = None) -> SyncReport:
    """As `platform sync` does: with the plan that is on disk."""
    return push_sweep(sweep.reread(), uri)


def is_current(home: Home, uri: str | None = None) -> bool:
    """What the note says of a server that has all of the sweep, by default of the home folder's store."""
    return sync_note.is_current(read_sweep(home, "loo"), uri)


def change_plan(home: Home, **changes) -> None:
    """What starting the sweep again with another budget or window leaves behind."""
    dataclasses.replace(read_sweep(home, "loo").plan, **changes).write(home.plan_file("loo"))


def client_of(home: Home, uri: str | None = None):
    """A client of a server, by default of the home folder's store."""
    from mlflow import MlflowClient

    return MlflowClient(uri or default_tracking_uri(home))


def history_of(home: Home, metric: str, uri: str | None = None) -> list[tuple[int, float]]:
    """Step and value of every point of a metric of the variant loo-loss."""
    run_id = runs_of(home, uri)["loo-loss"].info.run_id
    return [(point.step, point.value) for point in client_of(home, uri).get_metric_history(run_id, metric)]


def runs_of(home: Home, uri: str | None = None):
    """All MLflow runs of the sweep by name."""
    client = client_of(home, uri)
    found = client.search_runs([client.get_experiment_by_name("loo").experiment_id])
    assert len({run.info.run_name for run in found}) == len(found)
    return {run.info.run_name: run for run in found}


def is_thinned_out(row: dict) -> bool:
    """Of steps 64 to 127 every second is sent; the home folder of these tests has 80."""
    return row["kind"] == "train" and row["step"] >= 64 and row["step"] % 2 == 1


def files_of(home: Home, run) -> set[str]:
    """Names of the files that a run has."""
    return {file.path for file in client_of(home).list_artifacts(run.info.run_id)}


def assert_each_row_is_there_once(sweep: StartedSweep, uri: str | None = None):
    """Every row of every run log that is meant for MLflow is there, once."""
    home, plan = sweep.home, sweep.plan
    client, runs = client_of(home, uri), runs_of(home, uri)
    for variant in plan.variants:
        for run in variant.runs:
            rows = [json.loads(line) for line in home.run(run.id).metrics.read_text().splitlines()]
            for kind, metric in (("eval", "pass_rate"), ("train", "entropy"), ("train", "compute_gpu_hours")):
                mlflow_id = runs[f"{variant.name} seed {run.seed}"].info.run_id
                history = client.get_metric_history(mlflow_id, f"{kind}/{metric}")
                expected = [
                    (row["step"], row[metric]) for row in rows if row["kind"] == kind and not is_thinned_out(row)
                ]
                assert sorted((point.step, point.value) for point in history) == expected


def test_a_sweep_becomes_an_experiment_of_parents_and_children(running):
    home = running.home
    report = sync(running)
    assert (report.rows_pushed, report.rows_left, report.reason) == (3 * NUM_ROWS, 0, "")
    runs = runs_of(home)
    assert set(runs) == {name for variant in TRUTH for name in (variant, f"{variant} seed 0")}
    assert runs["loo-loss"].data.params == {"loss.type": "dapo"}
    assert runs["loo-loss seed 0"].data.tags["mlflow.parentRunId"] == runs["loo-loss"].info.run_id
    assert runs["loo-loss seed 0"].data.params == {"loss.type": "dapo"}
    assert runs["scalerl"].data.params == runs["scalerl seed 0"].data.params == {"loss.type": "cispo"}
    assert {run.info.status for run in runs.values()} == {"RUNNING"}
    assert "A" not in runs["loo-loss"].data.metrics
    assert_each_row_is_there_once(running)


def test_a_finished_variant_has_its_fit_verdict_and_figure_and_is_pushed_once(done):
    home = done.home
    assert not is_current(home)
    sync(done)
    assert is_current(home)
    parent = runs_of(home)["loo-loss"]
    assert parent.data.metrics["A"] == pytest.approx(TRUTH["loo-loss"][0], abs=0.01)
    assert parent.data.metrics["A_lo"] < TRUTH["loo-loss"][0] < parent.data.metrics["A_hi"]
    assert parent.data.metrics["cost_gpu_hours"] == BUDGET
    assert parent.data.tags["verdicts"] == "resolved; one seed: provisional"
    assert (parent.info.status, parent.info.end_time) == ("FINISHED", 1000 * HEARTBEAT)
    assert files_of(home, parent) == {"curve.png", "differences.png", "recipe.json"}
    assert files_of(home, runs_of(home)["scalerl"]) == files_of(home, parent) | {"report.html"}
    assert parent.info.artifact_uri.startswith((home.path / "mlartifacts").as_uri())
    assert sync(done).rows_pushed == 0
    assert_each_row_is_there_once(done)
    assert len(history_of(home, "A")) == 1
    with home.run(planned_run("scalerl", 0).id).metrics.open("a") as file:
        file.write('{"kind": "train", "step": 81, "loss": 0.1, "compute_gpu_hours": 2010.0, "wall_s": 201.0}\n')
    assert not is_current(home)


def test_notes_become_tags_and_a_removed_note_leaves_an_empty_one(finished):
    home, run = finished.home, finished.plan.variants[1].runs[0]
    of_variant = NoteSubject(home=home, folder=finished.folder, variant="loo-loss")
    sync(finished)
    assert "notes" not in runs_of(home)["loo-loss"].data.tags
    of_variant.add(text="repeat with FP32", tags=("keep", "paper"), at=1.0)
    NoteSubject(home=home, folder=home.run(run.id).path).add(text="disk was \x1b full", at=2.0)
    NoteSubject(home=home, folder=finished.folder).add(text="for the rebuttal", at=3.0)
    assert not is_current(home)
    assert sync(finished).rows_pushed == 0
    assert is_current(home)
    runs, experiment = runs_of(home), client_of(home).get_experiment_by_name("loo")
    assert {name: runs["loo-loss"].data.tags[name] for name in ("notes", "tags")} == {
        "notes": "repeat with FP32", "tags": "keep, paper"
    }  # fmt: skip
    assert runs["loo-loss seed 0"].data.tags["notes"] == "disk was \\x1b full"
    assert experiment.tags["notes"] == "for the rebuttal"
    assert "notes" not in runs["scalerl"].data.tags
    of_variant.remove(1)
    sync(finished)
    assert {name: runs_of(home)["loo-loss"].data.tags[name] for name in ("notes", "tags")} == {
        "notes": "", "tags": "keep, paper"
    }  # fmt: skip


def test_the_mean_curve_of_more_seeds_than_before_has_a_name_of_its_own(finished):
    home = finished.home
    sync(finished)
    one = history_of(home, "eval/pass_rate")
    for variant in TRUTH:
        write_run(home, planned_run(variant, 1).id, TRUTH[variant], seed=1)
    make_plan(seeds=(0, 1)).write(home.plan_file("loo"))
    sync(finished)
    of_seeds: dict[int, list[float]] = {}
    for seed in (0, 1):
        for line in home.run(planned_run("loo-loss", seed).id).metrics.read_text().splitlines():
            if (row := json.loads(line))["kind"] == "eval":
                of_seeds.setdefault(row["step"], []).append(row["pass_rate"])
    assert history_of(home, "eval/pass_rate") == one == [(step, first) for step, (first, _) in of_seeds.items()]
    both = {step: pytest.approx(sum(rates) / 2) for step, rates in of_seeds.items()}
    assert dict(history_of(home, "eval/pass_rate 2 seeds")) == both
    assert dict(history_of(home, "eval/compute_gpu_hours")) == {step: 25.0 * step for step in of_seeds}
    assert is_current(home)


def test_a_variant_is_compared_only_when_the_reference_has_ended_too(finished):
    home = finished.home
    write_state(home, planned_run("scalerl", 0).id, "running")
    sync(finished)
    assert runs_of(home)["loo-loss"].data.metrics == {}
    write_state(home, planned_run("scalerl", 0).id, "done")
    assert not is_current(home)
    sync(finished)
    assert runs_of(home)["loo-loss"].data.metrics["ceiling_difference"] == pytest.approx(0.54 - 0.61, abs=0.015)


def test_a_run_that_grows_is_pushed_from_where_it_was(tmp_path, empty_store):
    sweep = make_home(tmp_path, fraction=0.5, state="running")
    home, plan = sweep.home, sweep.plan
    shutil.copy(empty_store, home.path / "mlflow.db")
    assert sync(sweep).rows_pushed == 3 * HALF_ROWS
    for variant in plan.variants:
        shutil.rmtree(home.run(variant.runs[0].id).path)
        write_run(home, variant.runs[0].id, TRUTH[variant.name], state="cancelled" if variant.overrides else "done")
    assert not is_current(home)
    assert sync(sweep).rows_pushed == 3 * (NUM_ROWS - HALF_ROWS)
    assert_each_row_is_there_once(sweep)
    assert runs_of(home)["scalerl seed 0"].info.status == "FINISHED"
    assert runs_of(home)["loo-loss seed 0"].info.status == "KILLED"


@pytest.fixture(params=["before a batch", "after a batch", "after a run was made", "after a file"])
def killed(request, monkeypatch):
    """At some call a push is killed; a context."""
    from mlflow import MlflowClient

    place, calls = request.param, []
    of, name, count = {
        "after a run was made": (MlflowClient, "create_run", 4),
        "after a file": (MlflowClient, "log_artifact", 1),
    }.get(place, (SqlitePoints, "log", 6))
    original = getattr(of, name)

    def strike(number):
        calls.append(place)
        if len(calls) == number:
            raise KeyboardInterrupt

    def striking(self, *given, **more):
        if place == "before a batch":
            strike(count)
        made = original(self, *given, **more)
        if place.startswith("after"):
            strike(count)
        return made

    @contextmanager
    def killed():
        with monkeypatch.context() as patch:
            patch.setattr(of, name, striking)
            with pytest.raises(KeyboardInterrupt):
                yield

    return killed


def test_a_push_that_is_killed_at_any_point_loses_and_doubles_nothing(running, monkeypatch, killed):
    monkeypatch.setattr(mlflow_experiment, "MAX_BATCH_POINTS", 150)
    with killed():
        sync(running)
    assert not is_current(running.home)
    assert sync(running).rows_left == 0
    assert is_current(running.home)
    assert_each_row_is_there_once(running)
    assert len(runs_of(running.home)) == 6
    assert files_of(running.home, runs_of(running.home)["scalerl"]) == {"recipe.json"}


def test_lost_notes_are_found_again_by_tag(running):
    sync(running)
    notes = running.folder / "sync.json"
    for content in (None, "{", "[]"):
        notes.unlink()
        if content is not None:
            notes.write_text(content)
        assert not is_current(running.home)
        report = sync(running)
        assert (report.rows_pushed, report.rows_left) == (0, 0)
        assert is_current(running.home)
    assert_each_row_is_there_once(running)


def test_a_variant_with_other_overrides_is_a_new_parent_of_the_same_runs(running):
    sweep, home = running, running.home
    sync(sweep)
    path = home.sweep("loo") / "plan.json"
    path.write_text(path.read_text().replace('"loo-loss"', '"loo-dapo"'))
    assert sync(sweep).rows_pushed == 0
    runs = runs_of(home)
    assert runs["loo-loss seed 0"].data.tags["mlflow.parentRunId"] == runs["loo-dapo"].info.run_id


def test_another_server_gets_everything_and_the_way_back_doubles_nothing(finished, empty_store, tmp_path, monkeypatch):
    sweep, home = finished, finished.home
    monkeypatch.chdir(tmp_path)  # MLflow keeps the files of a store that is not the home folder's in ./mlruns
    other = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'other.db')}"
    sync(sweep)
    assert is_current(home, default_tracking_uri(home))
    assert not is_current(home, other)
    assert sync(sweep, other).rows_pushed == 3 * NUM_ROWS
    assert is_current(home, other)
    assert not is_current(home)
    assert sync(sweep).rows_pushed == 0
    assert is_current(home)
    for uri in (None, other):
        assert_each_row_is_there_once(sweep, uri)
        assert [step for step, _ in history_of(home, "A", uri)] == [1]


def test_the_password_in_a_note_of_an_earlier_version_is_hidden(running):
    (running.folder / "sync.json").write_text(json.dumps({"tracking_uri": "https://ada:pineapple@mlflow:5000"}))
    assert "pineapple" not in read_note(running.home, "loo").tracking_uri
    assert read_note(running.home, "loo").tracking_uri.endswith("@mlflow:5000")


def test_two_synchronisers_never_push_the_same_sweep(running):
    sync(running)
    with FileLock(running.folder / "sync.lock"):
        assert sync(running).rows_left == 0
        report = sync(running, "http://127.0.0.1:9")
    assert (report.rows_pushed, report.rows_left) == (0, 3 * NUM_ROWS)  # of that server
    assert "another process" in report.reason


def test_mlflow_shows_the_fit_of_the_window_that_was_asked_for_last(finished):
    home = finished.home
    fits = []
    for window in (BUDGET, 1000.0, 320.0, BUDGET):
        change_plan(home, fit_to_gpu_hours=window)
        assert not is_current(home)
        sync(finished)
        fits.append(runs_of(home)["loo-loss"].data)
    wide, narrow, least, again = (fit.metrics for fit in fits)
    assert narrow["A_hi"] - narrow["A_lo"] > 1.2 * (wide["A_hi"] - wide["A_lo"])  # half the readings
    assert fits[2].tags["A_is"] == "lower bound only"  # the window ends at C_mid
    assert 0.4 < least["A_lo"] < TRUTH["loo-loss"][0]
    assert all(math.isnan(least[name]) for name in ("A", "A_hi", "B"))  # which the fits before had
    assert again == wide | {"system/fits": 4.0}
    known = [(step, value) for step, value in history_of(home, "A") if not math.isnan(value)]
    assert known == [(1, wide["A"]), (2, narrow["A"]), (4, wide["A"])]
    assert is_current(home)


def test_another_budget_is_fitted_again_once_the_runs_have_reached_it(finished):
    sweep, home, plan = finished, finished.home, finished.plan
    sync(sweep)
    change_plan(home, budget_gpu_hours=2 * BUDGET)
    sync(sweep)  # the runs have yet to go on
    assert [step for step, _ in history_of(home, "A")] == [1]
    for variant in plan.variants:
        write_state(home, variant.runs[0].id, "done", compute=2 * BUDGET)
    assert not is_current(home)
    sync(sweep)
    assert [step for step, _ in history_of(home, "A")] == [1, 2]


@pytest.mark.parametrize("call", ["log_artifact", "set_terminated", "log_batch"])
def test_a_fit_is_not_doubled_when_the_push_was_killed_at_it(finished, monkeypatch, call):
    """At its picture or its state, or when the numbers of its seed were sent."""
    from mlflow import MlflowClient

    def killed(self, run_id, *rest, **more):
        made = original(self, run_id, *rest, **more)
        run = client_of(home).get_run(run_id)
        if run.data.tags["kind"] == "seed" and call == "log_batch" and "verdicts" in run.data.tags:
            raise KeyboardInterrupt
        if run.data.tags["kind"] == "variant" and call != "log_batch" and not str(rest[0]).endswith("recipe.json"):
            raise KeyboardInterrupt
        return made

    sweep, home = finished, finished.home
    original = getattr(MlflowClient, call)
    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, call, killed)
        with pytest.raises(KeyboardInterrupt):
            sync(sweep)
    assert not is_current(home)
    assert "verdicts" not in runs_of(home)["scalerl"].data.tags  # which come last
    sync(sweep)
    assert is_current(home)
    assert "curve.png" in files_of(home, runs_of(home)["scalerl"])
    assert [step for step, _ in history_of(home, "A")] == [1]
    assert {run.info.status for run in runs_of(home).values()} == {"FINISHED"}


def test_a_corrupt_line_is_reported_and_the_other_runs_are_pushed(running):
    sweep, home = running, running.home
    metrics = home.run(planned_run("scalerl", 0).id).metrics
    lines = metrics.read_text().splitlines(keepends=True)
    metrics.write_text("".join([*lines[:100], "{]\n", *lines[101:]]))
    report = sync(sweep)
    assert report.rows_pushed == 100 + 2 * NUM_ROWS
    assert report.rows_left == NUM_ROWS - 100
    assert "metrics.jsonl:101: not a metrics row" in report.reason


class Full(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(507, "Insufficient Storage")
        self.end_headers()

    def log_message(self, format, *args):
        pass


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("kind", "reason"), [("dead", "refused"), ("silent", "timed out"), ("full", "507")])
def test_a_server_that_is_dead_silent_or_full_is_given_up_and_costs_no_row(tmp_path, monkeypatch, kind, reason):
    sweep = make_home(tmp_path)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with HTTPServer(("127.0.0.1", 0), Full) as server:
        if kind == "full":
            threading.Thread(target=server.serve_forever, daemon=True).start()
        if kind == "dead":
            server.server_close()
        report = sync(sweep, f"http://127.0.0.1:{server.server_port}")
        if kind == "full":
            server.shutdown()
    assert (report.rows_pushed, report.rows_left) == (0, 3 * NUM_ROWS)
    assert f"pushed 0 rows, {3 * NUM_ROWS} left, because" in str(report)
    assert reason in report.reason


def test_a_home_folder_may_have_a_name_that_means_something_in_a_url(tmp_path, empty_store):
    (odd := tmp_path / " ".join(ODD_NAMES)).mkdir()
    shutil.copy(empty_store, odd / "mlflow.db")
    sweep = make_home(odd, state="running")
    assert sync(sweep) == SyncReport(
        tracking_uri=default_tracking_uri(sweep.home), rows_pushed=3 * NUM_ROWS, rows_left=0
    )
    known = read_note(sweep.home, "loo").runs[planned_run("scalerl", 0).id]
    assert list((odd / "mlartifacts").rglob(f"{known.mlflow_id}/artifacts/recipe.json"))
    assert list(tmp_path.iterdir()) == [odd]


def test_numbers_written_into_the_tables_are_those_that_the_client_writes(running):
    """NaN, infinities, repeated numbers and ones that come late included."""
    sync(running)
    client, uri = client_of(running.home), default_tracking_uri(running.home)
    experiment = client.get_experiment_by_name("loo").experiment_id
    numbers = [
        *(MetricPoint("a/b", value, 5, step) for step, value in enumerate((0.1, math.nan, math.inf, -math.inf, 3))),
        *(
            MetricPoint("a/b", 0.1, 5, 0),
            MetricPoint("a/c", 7.0, 9, 1),
            MetricPoint("a/c", 8.0, 4, 1),
            MetricPoint("a/c", 1.0, 1, 0),
        ),
    ]
    ours, theirs = (client.create_run(experiment).info.run_id for _ in range(2))
    from mlflow.entities import Metric

    points = SqlitePoints.of(uri)
    assert points is not None
    for batch in (numbers[:4], numbers):
        assert points.log(ours, batch)
        client.log_batch(theirs, [Metric(one.name, one.value, one.timestamp_ms, one.step) for one in batch])
    with contextlib.closing(sqlite3.connect(running.home.path / "mlflow.db")) as store:
        for table in ("metrics", "latest_metrics"):
            query = f"SELECT key, value, timestamp, step, is_nan FROM {table} WHERE run_uuid = ? ORDER BY 1, 2, 3, 4, 5"
            assert store.execute(query, (ours,)).fetchall() == store.execute(query, (theirs,)).fetchall() != []
        client.delete_run(ours)
        assert not points.log(ours, numbers)
        store.execute("ALTER TABLE metrics ADD COLUMN context VARCHAR")
    assert SqlitePoints.of(uri) is None  # another version of MLflow: left to the client
    assert SqlitePoints.of("http://mlflow:5000") is None


def test_rows_of_an_edited_log_are_not_pushed_and_the_reason_is_said(tmp_path, empty_store):
    home = make_home(tmp_path / "home").home
    shutil.copy(empty_store, home.path / "mlflow.db")
    sweep = read_sweep(home, "loo")
    run = sweep.plan.variants[0].runs[0]
    folder = home.run(run.id)
    content = folder.metrics.read_bytes()
    mark = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    folder.checkpoint.mkdir()
    (folder.checkpoint / "manifest.json").write_bytes(seal({"form": 5, "log": mark, "parts": {}}))
    folder.metrics.write_bytes(content.replace(b"0.", b"1.", 1))
    report = push_sweep(sweep)
    assert f"{folder.metrics} has changed since it was written" in report.reason
    assert "its rows are not pushed" in report.reason
    assert report.rows_left == content.count(b"\n")
    assert report.rows_pushed > 0  # of the other runs

    folder.metrics.write_bytes(content)  # restored
    assert push_sweep(sweep).rows_left == 0
