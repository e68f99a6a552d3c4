"""The trainer on a real Slurm: the numbers of this machine, whatever happens to its jobs, and the same conclusions."""

import json
import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from mlflow_server import mlflow_server
from slurm.study import LIMIT_S, SlurmStudy
from waiting import wait_until

from ablations.tracking.beside_a_sweep import Tracker

SEARCH = "{space: {optimiser.learning_rate: {low: 2.0e-4, high: 5.0e-3, log: true}}, trials: 6}"
TRAINS = "status.beat(threads=self.recipe.threads)"


def test_runs_that_a_higher_partition_sends_back_to_the_queue_have_the_numbers_of_this_machine(study, monkeypatch):
    # Pushes to MLflow take longer than the rest.
    pushed = []
    monkeypatch.setattr(Tracker, "look", lambda *_: None)
    monkeypatch.setattr(Tracker, "begin_last", lambda *_: pushed.append("finished"))
    study.write(resources="partition: low")
    study.file.write_text(study.file.read_text().replace("    off_policy:\n", ""))
    study.submit()
    row = study.until_trains("scalerl")
    os.kill(row["pid"], signal.SIGSTOP)  # so that it does not end too soon; Slurm sends SIGCONT before its signals
    study.cluster.run("sbatch", "--partition=high", "--exclusive", "--output=/dev/null", "--wrap", "sleep 1")
    seen = study.until(lambda rows: rows["scalerl"]["state"] in ("preempted", "requeued"))
    assert seen["scalerl"]["step"] > 0
    assert study.until_done()["scalerl"]["attempt"] == 2
    assert pushed == []
    assert "report" in study.submit()  # nothing is left: the same command concludes
    assert pushed == ["finished"]
    assert len(study.submissions()) == 1
    here = SlurmStudy(cluster=study.cluster, folder=study.folder.with_name("here"))
    here.file.write_text(study.file.read_text())
    here.platform("sweep", str(here.file), "--jobs", "2")
    assert study.metrics() == here.metrics()


@pytest.mark.studies
def test_a_search_whose_trials_all_fail_alike_is_held_and_goes_on_when_that_is_mended(study, source):
    path = source / "scalerl" / "run" / "loop.py"
    whole = path.read_text()
    assert TRAINS in whole
    path.write_text(whole.replace(TRAINS, 'raise RuntimeError("no such device")'))
    study.write(resources="at_once: 2", search=SEARCH)
    study.file.write_text(re.sub("leave_one_out:.*?(?=budget)", "", study.file.read_text(), flags=re.DOTALL))
    sweep = ("sweep", str(study.file), "--executor", "slurm", "--yes")
    environment = {"PYTHONPATH": str(source)}
    assert "7 jobs" in study.platform(*sweep, "--dry-run")
    said = study.apart(*sweep, code=2, **environment)
    assert "3 runs in a row failed: RuntimeError: no such device" in said
    # Three that failed, and what was in flight beside the third: not the reference and all six trials.
    assert 3 <= sum(len(one.runs) for one in study.submissions()) <= 5
    path.write_text(whole)
    study.apart(*sweep, code=0, **environment)
    assert [row["state"] for row in study.runs()] == ["done"] * 7


def fill(disk: Path) -> Path:
    """A file that takes what others leave, however much they write meanwhile."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    return filler


@pytest.mark.studies
def test_a_full_home_folder_costs_what_was_not_saved_and_nothing_else(empty, small_disk, tmp_path):
    study = SlurmStudy(cluster=empty, folder=tmp_path / "study", budget=4.0, home=small_disk / "home")
    study.submit()
    study.until_trains("scalerl", steps=20)
    filler = fill(small_disk)
    # Every job ends, because it cannot write.
    wait_until(lambda: not study.queued(), "the end of every job", limit_s=LIMIT_S, every_s=1.0)
    # Not the words: of a lost run they end with those of its job, perhaps half a traceback on a full disk.
    states = {run["state"] for run in json.loads(study.platform("status", "--json", code=None))["runs"]}
    assert states <= {"failed", "lost", "pending"}
    refused = study.submit(code=2)
    assert "No space left on device" in refused
    filler.unlink()
    study.until(lambda rows: {row["state"] for row in rows.values()} <= {"failed", "lost", "done"})
    study.submit()
    study.until_done()
    assert study.metrics() == study.undisturbed()


@pytest.mark.studies
def test_a_tracking_server_that_is_down_throughout_and_back_at_the_end_gets_everything(study, tmp_path, empty_store):
    with mlflow_server(tmp_path, empty_store) as server:
        study.submit("--tracking-uri", server.uri)
        watch = study.start("sync", "small", "--watch", "--every", "2", "--tracking-uri", server.uri)
        study.until_done()
        server.start()
        said, _ = watch.communicate(timeout=LIMIT_S)
        assert watch.returncode == 0, said
        assert "rows are left, because" in said
        assert said.rstrip().endswith("MLflow has everything")
        assert "is up to date" in study.platform("sync", "--tracking-uri", server.uri)


@pytest.mark.studies
def test_a_controller_that_forgot_everything_leaves_runs_that_are_lost_and_its_ids_confuse_nobody(
    own_cluster, tmp_path
):
    study = SlurmStudy(cluster=own_cluster, folder=tmp_path / "study", budget=4.0)
    study.submit()
    study.until_trains("scalerl")
    first = {one.name: one.job for one in study.submissions()}
    study.cluster.kill_controller()
    study.cluster.start_controller(forget=True)
    # Somebody else's jobs take the ids that ours had; held, since the node would not start an id that still runs there.
    held = ("sbatch", "--parsable", "--hold", "--output=/dev/null", "--wrap", "true")
    others = {study.cluster.run(*held).stdout.strip() for _ in range(6)}
    assert others >= set(first.values())
    rows = study.until(lambda rows: {row["state"] for row in rows.values()} <= {"lost", "done"})
    assert "lost" in {row["state"] for row in rows.values()}
    study.platform("retry")
    study.until_done()
    assert study.metrics() == study.undisturbed()
