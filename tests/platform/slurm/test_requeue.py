"""The rules of the requeue; that a job really goes back to the queue and trains on is tests/slurm."""

import pytest

from ablations.slurm.requeue import is_stuck, signal_before_limit_s


@pytest.mark.parametrize(("limit_min", "seconds"), [(1, 30), (2, 60), (4, 120), (5, 120), (600, 120)])
def test_slurm_signals_two_minutes_before_the_limit_or_half_of_a_short_one(limit_min, seconds):
    assert signal_before_limit_s(limit_min) == seconds


@pytest.mark.parametrize(
    ("num_steps", "num_restarts", "expected"), [(0, 0, False), (0, 1, True), (1, 0, False), (1, 1, False)]
)
def test_a_run_is_stuck_when_two_jobs_in_a_row_make_no_step(num_steps, num_restarts, expected):
    assert is_stuck(num_steps=num_steps, num_restarts=num_restarts) is expected
