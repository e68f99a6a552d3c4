"""However a job ends, its run loses nothing that was in a checkpoint, and its state says what happened."""

import os
import signal

import pytest
from slurm.study import SlurmStudy

BUDGET = 4.0


@pytest.fixture
def study(empty, tmp_path):
    """On the cluster without accounting."""
    return SlurmStudy(cluster=empty, folder=tmp_path / "study", budget=BUDGET)


@pytest.fixture
def on_either(either_cluster, tmp_path):
    """On a cluster without accounting, and on one with it."""
    yield SlurmStudy(cluster=either_cluster, folder=tmp_path / "study", budget=BUDGET)
    either_cluster.cancel_all()


def test_scancel_of_a_running_and_of_a_pending_job(on_either):
    study = on_either
    study.write(resources="at_once: 1")
    study.submit()
    study.until_trains("scalerl")
    study.cluster.run("scancel", study.job("scalerl"), study.job("loo-off_policy"))
    rows = study.until_states(scalerl="cancelled", loo_off_policy="cancelled", loo_loss=("running", "done"))
    assert rows["scalerl"]["step"] > 0  # its checkpoint was written: Slurm sends SIGTERM first
    assert (study.home / "runs" / rows["scalerl"]["id"] / "checkpoint.pt").exists()
    study.submit()
    rows = study.until_done()
    assert [rows[name]["attempt"] for name in ("scalerl", "loo-loss", "loo-off_policy")] == [2, 1, 1]
    assert study.metrics() == study.undisturbed()


def test_a_killed_process_is_lost_and_goes_on_from_its_checkpoint(on_either):
    study = on_either
    study.submit()
    row = study.until_trains("scalerl")
    os.kill(row["pid"], signal.SIGKILL)
    row = study.until_states(scalerl="lost")["scalerl"]
    assert study.job("scalerl") in row["message"]
    study.platform("retry", "--state", "lost")
    study.until_done()
    assert study.rows()["scalerl"]["attempt"] == 2


def test_a_job_that_takes_too_much_memory_says_so(on_either):
    study = on_either
    study.file.write_text(study.file.read_text().replace("mem_gb: 1", "mem_gb: 0.2"))
    study.submit()
    rows = study.until(lambda rows: {row["state"] for row in rows.values()} == {"out of memory"})
    assert "mem_gb" in rows["scalerl"]["message"]
    study.write()
    study.submit()
    study.until_done()


def test_a_job_of_a_higher_partition_sends_runs_back_to_the_queue(study):
    study.write(resources="partition: low")
    study.submit()
    study.until_trains("scalerl")
    high = study.cluster.run(
        *("sbatch", "--parsable", "--partition=high", "--exclusive", "--output=/dev/null", "--wrap", "sleep 3")
    ).stdout.strip()
    seen = study.until(lambda rows: rows["scalerl"]["state"] in ("preempted", "requeued"))
    assert seen["scalerl"]["step"] > 0
    assert high
    rows = study.until_done()
    assert rows["scalerl"]["attempt"] == 2
    assert study.metrics() == study.undisturbed()


@pytest.mark.timeout(700)
def test_what_was_trained_before_the_time_limit_is_kept_and_trained_on(study):
    study.budget = 12.0
    study.write()
    study.file.write_text(study.file.read_text().replace("time_min: 10", "time_min: 1"))
    study.submit()
    study.until(lambda rows: any(row["attempt"] > 1 for row in rows.values()))
    rows = study.until_done(limit_s=400)
    assert max(row["attempt"] for row in rows.values()) > 1
    logs = sorted((study.home / "runs" / rows["scalerl"]["id"] / "logs").iterdir())
    assert [log.name for log in logs] == [f"attempt-{number}.log" for number in range(1, len(logs) + 1)]
    assert study.metrics() == study.undisturbed()


@pytest.mark.timeout(500)
def test_a_run_that_no_time_limit_lets_begin_has_timed_out_with_the_remedy(study):
    text = study.file.read_text().replace("time_min: 10", "time_min: 1")
    study.file.write_text(text.replace("resources: {", "resources: {setup: ['sleep 100'], "))
    study.submit()
    rows = study.until(lambda rows: {row["state"] for row in rows.values()} == {"timed out"}, limit_s=300)
    assert "time_min" in rows["scalerl"]["message"]
