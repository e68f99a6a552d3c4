"""What a machine does to a study: a disk that fills up, a log torn by a crash, a tracking server that is not there."""

import json
import os
import shutil
from pathlib import Path

import pytest
from integration.conftest import NUM_RUNS, read_metrics


@pytest.fixture
def home(small_disk: Path) -> Path:
    return small_disk / "home"


def fill(disk: Path, leave: int) -> Path:
    """A file that takes all but `leave` bytes of the disk."""
    filler = disk / "filler"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with filler.open("wb") as file:
        file.write(b"x" * (free - leave))
    return filler


@pytest.mark.studies
def test_a_full_disk_is_reported_and_costs_no_finished_run(platform, study, home, small_disk):
    platform("sweep", str(study), "--set", "batch.prompts=4")
    finished = read_metrics(home)
    filler = fill(small_disk, leave=0)
    refused = platform("sweep", str(study), code=2)
    assert "No space left on device" in refused.stderr
    assert "Traceback" not in refused.stderr

    filler.unlink()
    filler = fill(small_disk, leave=150 * 1024)
    failed = platform("sweep", str(study), code=None)
    assert failed.returncode in (1, 2, 3)
    assert "Traceback" not in failed.stderr

    filler.unlink()
    platform("sweep", str(study))
    after = read_metrics(home)
    assert len(after) == 2 * NUM_RUNS
    assert {run_id: after[run_id] for run_id in finished} == finished


@pytest.mark.studies
def test_a_log_line_torn_by_a_crash_and_a_corrupt_one_are_survived(platform, study, home):
    platform("sweep", str(study))
    runs = {run["variant"]: run["id"] for run in json.loads(platform("status", "--json").stdout)["runs"]}
    torn = home / "runs" / runs["scalerl"] / "metrics.jsonl"
    with torn.open("a") as file:
        file.write('{"kind": "eval", "st')
    corrupt = home / "runs" / runs["loo-loss"] / "metrics.jsonl"
    lines = corrupt.read_text().splitlines(keepends=True)
    corrupt.write_text("".join([*lines[:3], "garbage\n", *lines[3:]]))

    compared = {line["curve"]: line for line in json.loads(platform("compare", "--json").stdout)["variants"]}
    assert compared["scalerl"]["A_lo"] is not None
    assert "metrics.jsonl:4" in compared["loo-loss"]["reason"]

    # A torn end is cut off at the resume. What stands before the checkpoint cannot be made again: that run is refused.
    platform("sweep", str(study), "--budget", "1.5", code=1)
    failed = {run["variant"]: run["message"] for run in json.loads(platform("status", "--json", code=1).stdout)["runs"]}
    assert str(corrupt) in failed["loo-loss"]
    assert "`rm -r " in failed["loo-loss"]
    assert not failed["scalerl"]
    rows = [json.loads(line) for line in torn.read_text().splitlines()]
    assert rows[-1]["compute_gpu_hours"] >= 1.5 * 8.0

    shutil.rmtree(corrupt.parent / "checkpoint")  # as the message says
    platform("sweep", str(study), "--budget", "1.5")
    assert [json.loads(line) for line in corrupt.read_text().splitlines()][-1]["compute_gpu_hours"] >= 1.5 * 8.0


@pytest.mark.studies
def test_a_tracking_server_that_is_not_there_costs_nothing(platform, study, home):
    result = platform("sweep", str(study), "--tracking-uri", "http://127.0.0.1:9")
    assert "left" in result.stdout
    assert len(read_metrics(home)) == NUM_RUNS
    platform("sync", "small")
    assert (home / "mlflow.db").exists()
