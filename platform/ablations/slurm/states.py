"""What a run is doing, from its own status file and from what Slurm says of its job.

The run's own word counts first: what is done is done, and a failure knows its cause. Slurm knows the rest: what waits
and why, what was ended from outside, and what is gone.
"""

from dataclasses import replace

from ablations.home import Home
from ablations.slurm.commands import Job
from ablations.slurm.queue_cache import ENDED, GONE, QueueCache
from ablations.slurm.submissions import all_submissions
from ablations.state import RunState, State

ENDINGS: dict[str, tuple[State, str]] = {
    "TIMEOUT": ("timed out", "the time limit came before its checkpoint; give resources.time_min more"),
    "DEADLINE": ("timed out", "its deadline passed"),
    "OUT_OF_MEMORY": ("out of memory", "Slurm ended it for its memory; give resources.mem_gb more"),
    "PREEMPTED": ("preempted", "another job took its place and it was not requeued"),
    "NODE_FAIL": ("node failed", "its node failed and it was not requeued"),
    "BOOT_FAIL": ("node failed", "its node did not start"),
    "CANCELLED": ("cancelled", "scancel"),
}
"""Slurm's word for an end that the run itself may not have seen: our state and what it means."""
NEVER_STARTED = 0


class SlurmStates:
    """The states of runs that were submitted from this home folder; asks Slurm once for all of them."""

    def __init__(self, home: Home, *, fresh: bool = False) -> None:
        submissions = sorted(all_submissions(home), key=lambda submission: submission.submitted)
        self._job_of = {run: (one.name, job) for one in submissions for run, job in one.task_ids().items()}
        """Of each run the job that was submitted last."""
        self._jobs: dict[tuple[str, str], Job] = {}
        if submissions:
            cache = QueueCache(home.path / "slurm.json")
            names = {submission.name for submission in submissions}
            self._jobs = cache.jobs(names, since=submissions[0].submitted, fresh=fresh)

    def state(self, run_id: str, own: RunState) -> RunState:
        """The state of a run, given what its own files say."""
        key = self._job_of.get(run_id)
        if key is None or own.state in ("done", "stopped"):
            return own
        return in_slurm(own, self._jobs.get(key, Job(id=key[1], name=key[0], state=GONE)))

    def is_in_queue(self, run_id: str) -> bool:
        """Whether a job of this run waits or runs."""
        key = self._job_of.get(run_id)
        return key is not None and key in self._jobs and self._jobs[key].state not in ENDED

    def job(self, run_id: str) -> str | None:
        """Slurm's id of the job that waits or runs for this run."""
        return self._job_of[run_id][1] if self.is_in_queue(run_id) else None


def in_slurm(own: RunState, job: Job) -> RunState:
    """What both say together: `own` is the run's own state, which is not done, `job` its last job."""
    if job.state in ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"):
        waits = f"job {job.id} waits: {job.reason or job.state}"
        return replace(own, state="queued" if own.attempt == NEVER_STARTED else "requeued", message=waits, pid=None)
    if job.state not in ENDED:  # RUNNING, CONFIGURING, COMPLETING, SUSPENDED, ...
        if own.state in ("running", "stale"):
            return replace(own, message=own.message or f"job {job.id}")
        return replace(own, state="running", message=f"job {job.id} is {job.state.lower()}, training has not begun")
    if own.state == "failed":
        return own
    if job.state in ENDINGS:
        state, meaning = ENDINGS[job.state]
        return replace(own, state=state, message=f"job {job.id}: {meaning}", pid=None)
    if own.state in ("running", "stale"):
        return replace(
            own, state="lost", message=f"job {job.id} is {job.state.lower()}, its process left no word", pid=None
        )
    return own
