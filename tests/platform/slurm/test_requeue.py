"""The rules of the requeue; that a job really goes back to the queue and trains on is tests/slurm."""

import os

import pytest

from ablations.slurm.commands import outside_of_jobs
from ablations.slurm.pool import as_outside_of_jobs
from ablations.slurm.requeue import is_stuck, own_job, signal_before_limit_s


@pytest.mark.parametrize(("limit_min", "seconds"), [(1, 30), (2, 60), (4, 120), (5, 120), (600, 120)])
def test_slurm_signals_two_minutes_before_the_limit_or_half_of_a_short_one(limit_min, seconds):
    assert signal_before_limit_s(limit_min) == seconds


@pytest.mark.parametrize(
    ("num_steps", "num_restarts", "expected"), [(0, 0, False), (0, 1, True), (1, 0, False), (1, 1, False)]
)
def test_a_run_is_stuck_when_two_jobs_in_a_row_make_no_step(num_steps, num_restarts, expected):
    assert is_stuck(num_steps=num_steps, num_restarts=num_restarts) is expected


def test_a_task_of_an_array_is_requeued_by_its_own_id(monkeypatch):
    """Slurm 22.05: the last task has the array's number as SLURM_JOB_ID; requeueing that number reruns the array."""
    for name, value in {"SLURM_JOB_ID": "17", "SLURM_ARRAY_JOB_ID": "17", "SLURM_ARRAY_TASK_ID": "3"}.items():
        monkeypatch.setenv(name, value)
    assert own_job() == "17_3"
    monkeypatch.delenv("SLURM_ARRAY_JOB_ID")
    assert own_job() == "17"


def test_what_is_submitted_inside_a_job_inherits_no_restarts_and_no_task_of_it(monkeypatch):
    """Slurm 22.05 hands SLURM_RESTART_COUNT and the number of an array's task on to jobs that are submitted inside, and
    sets neither in a first start; a run would count as restarted."""
    of_job = {"SLURM_RESTART_COUNT": "2", "SLURM_ARRAY_TASK_ID": "3", "SBATCH_PARTITION": "a", "SLURM_CONF": "/etc/a"}
    assert outside_of_jobs(of_job | {"PATH": "/bin"}) == {"PATH": "/bin", "SLURM_CONF": "/etc/a"}
    for name, value in of_job.items():
        monkeypatch.setenv(name, value)
    with as_outside_of_jobs():
        assert {*of_job} & {*os.environ} == {"SLURM_CONF"}
    assert os.environ["SLURM_RESTART_COUNT"] == "2"
