"""Decides whether a run gets a new job, and which of its jobs must end first, from its state and its jobs alone.

>>> action(State.PENDING, [], 2000.0)
Submit(after=())
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ablations.home.state import State
from ablations.slurm.commands import Job
from ablations.slurm.submissions import Submission


@dataclass(frozen=True, kw_only=True)
class Submit:
    """The run needs a new job, which starts when these have ended: `Submit(after=("17",))`."""

    after: tuple[str, ...]


def action(
    state: State, queued: Sequence[tuple[Submission, Job]], budget_gpu_hours: float
) -> Submit | Literal["done", "has a job", "trains here"]:
    """The action for a run with this budget; `queued` are its waiting and running jobs.

    "has a job" that trains it to the budget; "trains here" in a process on this machine, perhaps to a smaller budget.
    A job cancelled a moment ago stays in the queue until its node has ended it, but trains no further. The new job
    waits for that task alone, and for the whole array of any other job.
    """
    if state.is_finished:
        return "done"
    staying = [(one, job) for one, job in queued if state != State.CANCELLED or job.waits]
    if any(one.budget_gpu_hours >= budget_gpu_hours for one, _ in staying):
        return "has a job"
    if state == State.RUNNING and not queued:
        return "trains here"
    before = (one.job if (one, job) in staying else job.id for one, job in queued)
    return Submit(after=tuple(sorted({job for job in before if job})))
