"""`platform sweep` on a real study, from the file to the verdict."""

import json
import os
import random
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from filelock import FileLock
from formats_page import documented_as, documented_field, section, train_fields, tree
from integration.conftest import NUM_RUNS, is_untouched, kill_tree, read_metrics, start
from typer.testing import CliRunner
from waiting import wait_until

from ablations.cli import app
from ablations.errors import AblationsError

LEFT_BY_OTHER_SWEEPS = {
    "runs/<id>/left_out.jsonl",
    "warm_starts/<hash>.partial/",
    *(f"sweeps/<name>/{name}" for name in ("stopped.json", "search.json", "cancelled")),
    *(
        f"sweeps/<name>/{name}"
        for name in ("submissions/<name>.json", "submissions/<name>/", "hold.json", "submitit/<name>/")
    ),
    *(
        f"sweeps/<name>/{name}"
        for name in (
            "repeated_runs/<key>.msgpack",
            "remarks/<key>.msgpack",
            "forecasts/<key>.msgpack",
            "past_forecasts/<key>.msgpack",
            "with/<name>/",
        )
    ),
    "sweeps/<name>/notified.json",
    *(
        f"sweeps/<name>/{name}"
        for name in ("card.json", "card.md", "curves.svg", "report-md/", "report-csv/", "report-latex/")
    ),
    *("slurm.json", "submit.lock", "slurm.lock", "snapshots/<hash>/", "doctor/<job>/"),
    *("sweeps/<name>/ray/driver.log", "sweeps/<name>/ray/<attempt>/"),
    *("runs/<id>/logs/attempt-<n>.node-<k>.log", "runs/<id>/meeting.json", "runs/<id>/weights/"),
    *("curves/<key>/", "sweeps/<name>/background.log", "runs/<id>/source.json", "sweeps/<name>/sources.json"),
    *("campaigns/<name>/ledger.jsonl", "notes.lock", "sweeps/<name>/notes.json", "runs/<id>/notes.json"),
    *("runs/<id>/evaluations/", "runs/<id>/own/", "runs/<id>/work/", "runs/<id>/config.yaml"),
}
"""With other sweeps, stop rules, a search, `platform reproduce` or `cancel`, Slurm, Ray, several nodes, the user's own
functions, programs, imported runs, logs of other trainers, a campaign, notes, or an agent."""


def test_a_sweep_trains_every_run_once_and_is_extended_by_a_larger_budget(platform, study, trained, home):
    shutil.copytree(trained, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("mlflow*", "sync.json"))
    before = read_metrics(home)
    assert len(before) == NUM_RUNS
    assert all(next(row["step"] for row in rows if row["kind"] == "eval") == 0 for rows in before.values())

    assert "report.html" in platform("sweep", str(study)).stdout
    with closing(sqlite3.connect(home / "mlflow.db")) as store:
        assert store.execute("select count(*) from runs").fetchone()[0] == 2 * NUM_RUNS
    status = json.loads(platform("status", "small", "--json").stdout)
    assert [run["attempt"] for run in status["runs"]] == [1] * NUM_RUNS
    assert read_metrics(home) == before

    platform("sweep", str(study), "--budget", "1.5")
    after = read_metrics(home)
    for run_id, rows in before.items():
        assert after[run_id][: len(rows)] == rows
        assert after[run_id][-1]["compute_gpu_hours"] >= 1.5 * 8.0 > rows[-1]["compute_gpu_hours"]


@pytest.mark.studies
def test_killing_everything_at_random_moments_changes_no_metric(study, trained, tmp_path):
    disturbed, expected = tmp_path / "disturbed", read_metrics(trained)

    def num_rows() -> int:
        return sum(path.read_bytes().count(b"\n") for path in disturbed.glob("runs/*/metrics.jsonl"))

    for due in sorted(random.Random(20261120).sample(range(sum(map(len, expected.values()))), 4)):
        process = start(disturbed, "sweep", str(study))
        wait_until(lambda due=due: num_rows() >= due, f"{due} rows", process=process, every_s=0.01)
        kill_tree(process)
    process = start(disturbed, "sweep", str(study))
    assert process.wait(timeout=200) == 0
    assert read_metrics(disturbed) == expected


def steered(study: Path, name: str, text: str) -> Path:
    """The study under another name, with more in its file."""
    path = study.with_name(f"{name}.yaml")
    path.write_text(study.read_text().replace("name: small", f"name: {name}").replace("budget: {compute: 1.0}", text))
    return path


@pytest.mark.studies
def test_a_stop_rule_ends_variants_early_and_another_sweep_may_train_them_on(platform, study, home):
    # Every gain lies below 0.9, so the rule holds as soon as two fits do: after 7 evaluations of 50.
    file = steered(study, "stopping", "budget: {compute: 5.0}\nstop: {gain_below: 0.9}")
    printed = platform("sweep", str(file)).stdout
    assert "stopped, A" in printed
    runs = json.loads(platform("status", "stopping", "--json").stdout)["runs"]
    assert [run["state"] for run in runs] == ["done", "stopped", "stopped"]
    assert all("gain to 40 GPU-hours below 0.9 with probability" in run["message"] for run in runs[1:])
    assert all(7 * 0.8 <= run["compute_gpu_hours"] < 5.0 * 8.0 for run in runs[1:])
    stopped = json.loads((home / "sweeps" / "stopping" / "stopped.json").read_text())["runs"]
    assert {one["run"] for one in stopped if one["ends_run"]} == {run["id"] for run in runs[1:]}
    assert all((home / "runs" / run["id"] / "checkpoint" / "manifest.json").exists() for run in runs)

    before = read_metrics(home)
    platform("sweep", str(file))
    assert read_metrics(home) == before

    further = max(run["compute_gpu_hours"] for run in runs[1:]) + 2 * 0.8
    without = steered(study, "trained", f"budget: {{compute: {further / 8.0}}}")
    platform("sweep", str(without))
    after = read_metrics(home)
    assert all(after[run["id"]][-1]["compute_gpu_hours"] >= further for run in runs)
    assert all(after[run_id][: len(rows)] == rows for run_id, rows in before.items())
    again = json.loads(platform("status", "stopping", "--json").stdout)["runs"]
    assert [run["state"] for run in again] == ["done", "stopped", "stopped"]


def test_dry_run_prints_the_runs_and_writes_nothing(platform, study, home):
    runs = json.loads(platform("sweep", str(study), "--dry-run", "--json").stdout)["runs"]
    assert [run["variant"] for run in runs] == ["scalerl", "loo-loss", "loo-off_policy"]
    changed = {"loss.type": "dapo", "loss.clip_low": 0.2, "loss.clip_high": 0.26, "loss.delta": None}
    assert runs[1]["overrides"] == changed
    assert all(len(run["id"]) == 12 and run["seed"] == 0 for run in runs)
    assert is_untouched(home)


def test_ctrl_c_lets_runs_write_their_checkpoints(platform, study, home):
    process = start(home, "sweep", str(study), "--budget", "20x")
    wait_until(lambda: list(home.glob("runs/*/metrics.jsonl")), "a run that trains", process=process)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to every process of the group
    assert process.wait(timeout=250) == 3
    runs = json.loads(platform("status", "--json", code=3).stdout)["runs"]
    assert {run["state"] for run in runs} <= {"cancelled", "pending"}
    cancelled = [run for run in runs if run["state"] == "cancelled"]
    assert cancelled
    assert all((home / "runs" / run["id"] / "checkpoint" / "manifest.json").exists() for run in cancelled)


@pytest.mark.studies
def test_a_run_that_fails_is_named_and_told_and_costs_no_other_run(platform, study, home, hook):
    run_id = json.loads(platform("sweep", str(study), "--dry-run", "--json").stdout)["runs"][1]["id"]
    folder = home / "runs" / run_id
    folder.mkdir(parents=True)
    (folder / "checkpoint").mkdir()
    (folder / "checkpoint" / "manifest.json").write_bytes(b"not a checkpoint")
    study.write_text(study.read_text() + "notify: {url: $HOOK, on: [failed, done]}\n")
    result = platform("sweep", str(study), code=1)
    assert "loo-loss" in result.stdout
    assert hook.kinds == ["failed"]
    assert hook.bodies[0]["text"].startswith("small: loo-loss-s0 failed: ")
    runs = {run["variant"]: run for run in json.loads(platform("status", "--json", code=1).stdout)["runs"]}
    assert {name: run["state"] for name, run in runs.items()} == {
        "scalerl": "done",
        "loo-loss": "failed",
        "loo-off_policy": "done",
    }
    log = platform("logs", "loo-loss").stdout
    assert runs["loo-loss"]["message"] in log
    assert "Traceback" not in log


def test_two_sweeps_of_one_name_do_not_run_at_once(platform, study, home):
    (home / "sweeps" / "small").mkdir(parents=True)
    with FileLock(home / "sweeps" / "small" / "lock"):
        assert "another process already runs sweep" in platform("sweep", str(study), code=2).stderr
    assert not (home / "runs").exists()


def test_an_unwritable_home_is_one_message(study, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    result = CliRunner().invoke(app, ["sweep", str(study), "--home", str(tmp_path / "file")])
    assert isinstance(result.exception, AblationsError)
    assert "home folder" in str(result.exception)


def test_files_and_keys_that_a_sweep_leaves_are_those_of_the_documentation(trained):
    paths = tree()
    entries = {path: documented_as(path, trained, paths) for path in trained.rglob("*") if path.is_file()}
    assert [path for path, entry in entries.items() if entry is None] == []
    folders = {path for path in paths if any(other != path and other.startswith(path) for other in paths)}
    assert set(paths) - folders - set(entries.values()) == LEFT_BY_OTHER_SWEEPS

    always, _ = train_fields()
    table = section("`metrics.jsonl`").after("\n`eval`: ").table()
    of_eval = {name for name, meaning in table.items() if not meaning.startswith("only ")}
    status = section("`status.json`").example().keys()
    for folder in (trained / "runs").iterdir():
        assert json.loads((folder / "status.json").read_text()).keys() == status
        for line in (folder / "metrics.jsonl").read_text().splitlines():
            row = json.loads(line)
            documented = of_eval if row["kind"] == "eval" else always
            found = {*map(documented_field, row)} - {"kind"}
            assert found == documented or (row.get("skipped") and found < documented)
