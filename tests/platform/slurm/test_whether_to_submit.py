"""Which runs of a sweep get a new job: every case by hand; that Slurm then trains each once is tests/slurm."""

from dataclasses import replace
from pathlib import Path

import pytest

from ablations.home.state import State
from ablations.slurm.commands import Job
from ablations.slurm.pool import whether_to_submit
from ablations.slurm.submissions import Submission, new_submission


def job(number: int, state: str, *, to: float) -> tuple[Submission, Job]:
    """Task 3 of array `number`, submitted to train to `to` GPU-hours."""
    submission = new_submission("loo", ("81d2f0a95c3b",), to, Path("snapshot"), {})
    return replace(submission, job=str(number)), Job(id=f"{number}_3", name=submission.name, state=state)


@pytest.mark.parametrize(
    ("state", "queued", "expected"),
    [
        (State.PENDING, [], ()),
        (State.FAILED, [], ()),
        (State.LOST, [], ()),
        (State.DONE, [], "done"),
        (State.DONE, [job(17, "RUNNING", to=2000.0)], "done"),  # the job is about to end
        (State.RUNNING, [], "trains here"),  # a process on this machine has it
        (State.QUEUED, [job(17, "PENDING", to=2000.0)], "has a job"),
        (State.RUNNING, [job(17, "RUNNING", to=4000.0)], "has a job"),
        (State.FAILED, [job(17, "RUNNING", to=2000.0)], "has a job"),
        (State.RUNNING, [job(17, "RUNNING", to=1000.0)], ("17",)),
        (State.QUEUED, [job(17, "PENDING", to=1000.0)], ("17",)),
        (State.RUNNING, [job(18, "PENDING", to=2000.0), job(17, "RUNNING", to=1000.0)], "has a job"),
        (State.RUNNING, [job(9, "PENDING", to=1500.0), job(17, "RUNNING", to=1000.0)], ("17", "9")),
        (State.CANCELLED, [job(17, "COMPLETING", to=2000.0)], ("17_3",)),  # its node is ending it
        (State.CANCELLED, [job(17, "PENDING", to=2000.0)], "has a job"),  # an earlier job was cancelled
        (
            State.CANCELLED,
            [job(18, "PENDING", to=1000.0), job(17, "COMPLETING", to=2000.0)],
            ("17_3", "18"),
        ),
    ],
)
def test_a_run_gets_a_job_unless_it_is_done_or_something_trains_it_far_enough(state, queued, expected):
    assert whether_to_submit(state, queued, 2000.0) == expected
