"""The state of a run, from its own status file and from what Slurm says about its job.

The run's own status has priority: a run that reports that it is done is done, and a failed one names the cause. Slurm
knows the rest: which jobs wait and why, which were ended from outside, and which are gone.
"""

import time
from dataclasses import replace

from ablations.home.home import Home
from ablations.home.state import RunState, State
from ablations.slurm.commands import GONE, Job
from ablations.slurm.hold import read_hold
from ablations.slurm.queue_cache import JobKey, QueueAnswer, queue_answer
from ablations.slurm.submissions import Submission, logs_of_job, read_submissions, tells_of_memory

ENDINGS: dict[str, tuple[State, str]] = {
    "TIMEOUT": (State.TIMED_OUT, "reached the time limit before saving a checkpoint; raise resources.time_min"),
    "DEADLINE": (State.TIMED_OUT, "the deadline passed"),
    "OUT_OF_MEMORY": (State.OUT_OF_MEMORY, "used more memory than requested; raise resources.mem_gb"),
    "PREEMPTED": (State.PREEMPTED, "preempted by another job and not requeued"),
    "NODE_FAIL": (State.NODE_FAILED, "the node failed, and the job was not requeued"),
    "BOOT_FAIL": (State.NODE_FAILED, "the node did not start"),
    "CANCELLED": (State.CANCELLED, "cancelled in Slurm"),
}
"""Slurm's state for an end that the run itself may not have seen, with our state and a message for the user."""


class SlurmStates:
    """The states of runs submitted from this home folder; Slurm is queried once for all of them."""

    def __init__(self, home: Home, *, fresh: bool = False) -> None:
        self._home = home
        submissions = read_submissions(home)
        self._jobs: dict[str, list[tuple[Submission, JobKey]]] = {}
        """The submissions of each run, last one first, with its job in each."""
        keys: set[JobKey] = set()
        for one in submissions:
            for run, job in one.task_ids().items():
                keys.add((one.name, job))
                self._jobs.setdefault(run, []).insert(0, (one, (one.name, job)))
        self._answer = QueueAnswer()
        if submissions:
            self._answer = queue_answer(home, keys, since=submissions[0].submitted, fresh=fresh)
        self._holds = {sweep: read_hold(home, sweep) for sweep in {one.sweep for one in submissions}}

    def state(self, run_id: str, own: RunState) -> RunState:
        """The state of a run, given the state in its own files."""
        if run_id not in self._jobs or own.state.is_finished:
            return own
        submission, job = self._current(run_id)
        has_begun = own.heartbeat >= submission.submitted
        if job.waits and has_begun and own.heartbeat > self._answer.asked:
            job = replace(job, state="RUNNING", reason="")  # the job began after the query
        found = in_slurm(own, job, has_begun=has_begun)
        is_unexplained = job.state == "FAILED" and not found.state.is_finished and own.state != State.FAILED
        # Without control groups Slurm ends a job for its memory and reports that only in the job's log.
        if is_unexplained and tells_of_memory(logs_of_job(self._home, submission, run_id)):
            state, meaning = ENDINGS["OUT_OF_MEMORY"]
            found = replace(found, state=state, message=f"job {job.id}: {meaning}", pid=None)
        if self._answer.problem and not job.has_ended:
            asked = time.strftime("%H:%M", time.localtime(self._answer.asked))
            said = f"{found.message}; " if found.message else ""
            return replace(found, message=f"{said}Slurm did not answer at {asked}: {self._answer.problem}")
        hold = self._holds[submission.sweep]
        if found.state in (State.QUEUED, State.REQUEUED) and hold and submission.name in hold.submissions:
            return replace(found, message=f"{found.message}; held because {hold}")
        return found

    def submission(self, run_id: str) -> Submission | None:
        """The last submission of a run."""
        return self._jobs[run_id][0][0] if run_id in self._jobs else None

    def waiting_jobs(self, submission: Submission) -> dict[str, str]:
        """Slurm's ids of the waiting jobs of a submission, by run."""
        keys = {run: (submission.name, job) for run, job in submission.task_ids().items()}
        return {run: key[1] for run, key in keys.items() if self._answer.job(key).waits}

    def in_queue(self, run_id: str) -> list[tuple[Submission, Job]]:
        """The waiting and running jobs of a run, last submitted first; one to a larger budget waits for the rest."""
        return [(one, job) for one, job in self._all(run_id) if not job.has_ended]

    def _current(self, run_id: str) -> tuple[Submission, Job]:
        """The job that determines a run's state: a running one, else a waiting one, else the last one."""
        there = self.in_queue(run_id)
        runs = [one for one in there if not one[1].waits]
        return [*runs, *there, *self._all(run_id)][0]

    def _all(self, run_id: str) -> list[tuple[Submission, Job]]:
        return [(one, self._answer.job(key)) for one, key in self._jobs.get(run_id, ())]


def in_slurm(own: RunState, job: Job, *, has_begun: bool) -> RunState:
    """Combine the run's own state `own`, which is not done, with its last job. The run's own state is about this job
    only if the run `has_begun` to train in it.
    """
    if job.waits:
        waits = f"job {job.id} waits{f': {job.reason}' if job.reason else ''}"
        return replace(own, state=State.REQUEUED if has_begun else State.QUEUED, message=waits, pid=None)
    if not job.has_ended:  # RUNNING, CONFIGURING, COMPLETING, SUSPENDED, ...
        if not has_begun or own.state == State.PENDING:
            return replace(
                own, state=State.RUNNING, message=f"job {job.id} is {job.state.lower()}, training has not begun"
            )
        return replace(own, message=own.message or f"job {job.id}")
    if has_begun and own.state == State.FAILED:
        return own
    if job.state in ENDINGS:
        state, meaning = ENDINGS[job.state]
        return replace(own, state=state, message=f"job {job.id}: {meaning}", pid=None)
    if not has_begun:
        return _never_began(own, job)
    if own.state in (State.STALE, State.REQUEUED, State.PREEMPTED) or (
        own.state == State.RUNNING and job.state != "COMPLETED"
    ):
        said = "is gone" if job.state == GONE else f"has {job.state.lower()}"
        return replace(
            own, state=State.LOST, message=f"job {job.id} {said}; the process wrote no final status", pid=None
        )
    return own  # the job completed while another process trained the run


def _never_began(own: RunState, job: Job) -> RunState:
    if job.state == "COMPLETED":  # the run was done, or another process had it
        return own
    if job.state == GONE:
        text = f"Slurm no longer knows job {job.id}: it was cancelled while waiting, or Slurm has dropped its record"
        return replace(own, state=State.LOST, message=text, pid=None)
    text = f"job {job.id} ended before training began; for the reason, run `platform logs`"
    return replace(own, state=State.FAILED, message=text, pid=None)
