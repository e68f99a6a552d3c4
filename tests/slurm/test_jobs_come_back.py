"""Jobs that Slurm sends back to the queue, for others or for their time limit, and what their runs make of it."""

import os
import signal
from pathlib import Path

import pytest
from slurm.study import LIMIT_S, SlurmStudy
from waiting import wait_until


@pytest.fixture
def study(empty, tmp_path):
    return SlurmStudy(cluster=empty, folder=tmp_path / "study", budget=4.0)


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


@pytest.mark.studies
def test_what_was_trained_before_the_time_limit_is_kept_and_trained_on(study):
    study.file.write_text(study.file.read_text().replace("time_min: 10", "time_min: 2"))
    study.submit()
    row = study.until_trains("scalerl")
    # However fast the machine is, the run must not end before the time limit: the process stands still until Slurm
    # tells it of the limit. Slurm sends SIGCONT before that signal.
    os.kill(row["pid"], signal.SIGSTOP)
    wait_until(lambda: not stands_still(row["pid"]), "Slurm's signal before the time limit", limit_s=LIMIT_S)
    rows = study.until_done()
    assert rows["scalerl"]["attempt"] > 1
    logs = {log.name for log in (study.home / "runs" / rows["scalerl"]["id"] / "logs").iterdir()}
    assert logs == {f"attempt-{number}.log" for number in range(1, len(logs) + 1)}
    assert study.metrics() == study.undisturbed()


def stands_still(pid):
    """Whether a process is stopped, as by SIGSTOP."""
    try:
        return "State:\tT" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.studies
def test_a_run_that_no_time_limit_lets_begin_has_timed_out_with_the_remedy(study):
    text = study.file.read_text().replace("time_min: 10", "time_min: 1")
    study.file.write_text(text.replace("resources: {", "resources: {setup: ['sleep 100'], "))
    study.submit()
    rows = study.until(lambda rows: {row["state"] for row in rows.values()} == {"timed out"})
    assert "time_min" in rows["scalerl"]["message"]
