"""However a job ends, its run loses nothing that was in a checkpoint, and its state says what happened."""

import os
import signal

import pytest
from slurm.study import SlurmStudy


@pytest.fixture
def study(either_cluster, tmp_path):
    """On a cluster without accounting, and on one with it."""
    yield SlurmStudy(cluster=either_cluster, folder=tmp_path / "study", budget=4.0)
    either_cluster.cancel_all()


def test_scancel_of_a_running_and_of_a_pending_job(study):
    study.write(resources="at_once: 1")
    study.submit()
    study.until_trains("scalerl")
    study.cluster.run("scancel", study.job("scalerl"), study.job("loo-off_policy"))
    rows = study.until_states(scalerl="cancelled", loo_off_policy="cancelled", loo_loss=("running", "done"))
    assert rows["scalerl"]["step"] > 0  # its checkpoint was written: Slurm sends SIGTERM first
    assert (study.home / "runs" / rows["scalerl"]["id"] / "checkpoint" / "manifest.json").exists()
    study.submit()
    rows = study.until_done()
    assert [rows[name]["attempt"] for name in ("scalerl", "loo-loss", "loo-off_policy")] == [2, 1, 1]
    assert study.metrics() == study.undisturbed()


def test_a_killed_process_is_lost_and_goes_on_from_its_checkpoint(study):
    study.submit()
    row = study.until_trains("scalerl")
    os.kill(row["pid"], signal.SIGKILL)
    row = study.until_states(scalerl="lost")["scalerl"]
    assert study.job("scalerl") in row["message"]
    study.platform("retry", "--state", "lost")
    study.until_done()
    assert study.rows()["scalerl"]["attempt"] == 2


def test_a_job_that_takes_too_much_memory_says_so(study):
    study.file.write_text(study.file.read_text().replace("mem_gb: 1", "mem_gb: 0.2"))
    study.submit()
    rows = study.until(lambda rows: {row["state"] for row in rows.values()} == {"out of memory"})
    assert "mem_gb" in rows["scalerl"]["message"]
    study.write()
    study.submit()
    study.until_done()
