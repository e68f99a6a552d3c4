"""Turns runs into Slurm job arrays through submitit, no larger than the cluster accepts, never submitted twice.

How a job ended is read from the run's status file, the queue and accounting, never from a submitit result, since that
shows a killed job as never ended.
"""

import math
import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import submitit
from submitit.core.utils import FailedJobError, FailedSubmissionError

from ablations.home.cancellation import Cancellation
from ablations.home.home import Home
from ablations.home.state import State, read_state
from ablations.pools.code_snapshot import take_snapshot
from ablations.pools.pool import Ended
from ablations.slurm import commands
from ablations.slurm.batch_script import parameters
from ablations.slurm.commands import Job, SlurmError, SlurmSilent
from ablations.slurm.cost import most_tasks
from ablations.slurm.hold import Hold, read_hold, trap_folder
from ablations.slurm.interrupted_submissions import forget_interrupted, undo
from ablations.slurm.job import SlurmJob
from ablations.slurm.states import SlurmStates
from ablations.slurm.submission_lock import submitting
from ablations.slurm.submissions import Submission, log_folder, new_submission
from ablations.study.resources import Resources
from ablations.text import counted

LOOK_AT_RUNS_EVERY_S = 2.0
"""Seconds between checks of the runs; Slurm is queried less often."""


@dataclass(kw_only=True)
class SlurmPool:
    """Trains the runs of one sweep as Slurm jobs, each to its own budget.

    >>> pool.add("3f0c9a1b2d4e", 2000.0)
    >>> pool.submit()

    `submit` returns at once. A sweep that makes decisions while training stays and follows the runs with `work`.
    """

    home: Home
    sweep: str
    resources: Resources
    threads: int
    """Processors of a run if the resources set none."""
    cancelled: Cancellation
    """Runs that must not be submitted."""
    hold: bool = False
    """Submit held jobs, which start after `scontrol release`."""
    after: str | None = None
    """Job that must end first."""
    _waiting: dict[str, float] = field(default_factory=dict)
    """Budgets of the runs not submitted yet, in the order added."""
    _submitted: dict[str, float] = field(default_factory=dict)
    """Budgets of the runs whose end `work` waits for."""
    _stopping: set[str] = field(default_factory=set)
    _to_cancel: set[str] = field(default_factory=set)
    """Runs to stop whose jobs are not yet cancelled, because Slurm did not answer."""

    @property
    def where(self) -> str:
        where = f"partition {self.resources.partition}" if self.resources.partition else "the default partition"
        return f" as jobs on {where}, in {self.home.path}"

    def add(self, run_id: str, budget_gpu_hours: float) -> None:
        """Train a run until its compute reaches the budget, starting at the next `submit`."""
        self._waiting[run_id] = budget_gpu_hours

    def stop(self, run_id: str) -> None:
        """Cancel the job of a run, which saves its checkpoint and ends; drop a run that is not submitted yet."""
        self._waiting.pop(run_id, None)
        self._stopping.add(run_id)
        self._to_cancel.add(run_id)
        self._cancel_stopped()

    def is_busy(self, run_id: str) -> bool:
        return run_id in self._waiting or run_id in self._submitted

    def work(self) -> Generator[Ended | None, None, None]:
        """Submit all runs, including any added between two events; returns when no job waits or runs.

        At least one event every two seconds. If the caller leaves the loop, the jobs keep training, and the same sweep
        finds them when it is restarted.

        Raises SlurmError if the sweep is held after equal failures and only held jobs remain.
        """
        while self._waiting or self._submitted:
            self._cancel_stopped()
            hold = read_hold(self.home, self.sweep)
            if hold and self._all_held(hold):
                raise SlurmError(
                    f"{self.sweep}: {hold}; its waiting jobs are held. Fix the cause, then run the same command again"
                )
            with suppress(SlurmSilent):  # the controller is restarting; submit once it answers
                if self._waiting and not hold:
                    forget_interrupted(self.home, self.sweep)
                    self.submit()
            yield from self._reap() or [None]
            if self._waiting or self._submitted:
                time.sleep(LOOK_AT_RUNS_EVERY_S)

    def _all_held(self, hold: Hold) -> bool:
        states = SlurmStates(self.home)
        jobs = [there for run_id in self._submitted for there in states.in_queue(run_id)]
        return all(one.name in hold.submissions and job.waits for one, job in jobs)

    def _cancel_stopped(self) -> None:
        if not self._to_cancel:
            return
        with suppress(SlurmSilent):
            states = SlurmStates(self.home)
            commands.cancel_jobs(job.id for run_id in self._to_cancel for _, job in states.in_queue(run_id))
            self._to_cancel.clear()

    def _reap(self) -> list[Ended]:
        """Drop the runs whose jobs ended; returns those that have not reached their budget."""
        states, short = SlurmStates(self.home), []
        for run_id, budget_gpu_hours in list(self._submitted.items()):
            is_done = read_state(self.home.run(run_id), budget_gpu_hours).state.is_finished
            if not is_done and states.in_queue(run_id):
                continue
            del self._submitted[run_id]
            if not is_done and run_id not in self._stopping and run_id not in self.cancelled:
                short.append(self._ended(run_id, states))
            self._stopping.discard(run_id)
        return short

    def _ended(self, run_id: str, states: SlurmStates) -> Ended:
        state = states.state(run_id, read_state(self.home.run(run_id), math.inf))
        return Ended(run=run_id, why=f"{state.state}; {state.said}" if state.said else state.state)

    def submit(self) -> list[Submission]:
        """Submit the added runs that have no job yet: one array per budget, in chunks of MaxArraySize.

        A run that trains to a smaller budget gets a job that follows the current one. Only one process at a time may
        submit from a home folder, so two sweeps never both submit a run that they share.
        """
        for run_id in [run_id for run_id in self._waiting if run_id in self.cancelled]:
            del self._waiting[run_id]
        with submitting(self.home):
            groups = self._groups()
            if not groups:
                return []
            most = most_tasks(int(commands.settings()["MaxArraySize"]))
            snapshot, submitted = take_snapshot(self.home), []
            for (budget, after), run_ids in groups.items():
                for start in range(0, len(run_ids), most):
                    chunk = tuple(run_ids[start : start + most])
                    # Slurm's own limit is per array; arrays that take turns obey it together.
                    turns = [one.job for one in submitted[-1:] if one.job and self.resources.at_once]
                    submitted.append(self._submit_array(chunk, budget, (*after, *turns), snapshot))
                    self._submitted |= dict.fromkeys(chunk, budget)
                    for run_id in chunk:
                        del self._waiting[run_id]
                    # `platform cancel` could not see these jobs until sbatch had answered.
                    tasks = submitted[-1].task_ids().items()
                    commands.cancel_jobs(job for run_id, job in tasks if run_id in self.cancelled)
            return submitted

    def _groups(self) -> dict[tuple[float, tuple[str, ...]], list[str]]:
        """The runs that need a job, by budget and by the jobs that must end first; drops runs that are done."""
        states = SlurmStates(self.home)
        if any(states.in_queue(run_id) for run_id in self._waiting):
            states = SlurmStates(self.home, fresh=True)  # a job may have ended in the last seconds
        groups: dict[tuple[float, tuple[str, ...]], list[str]] = {}
        for run_id, budget in list(self._waiting.items()):
            state = states.state(run_id, read_state(self.home.run(run_id), budget)).state
            match whether_to_submit(state, states.in_queue(run_id), budget):
                case "done":
                    del self._waiting[run_id]
                case "has a job":
                    del self._waiting[run_id]
                    self._submitted[run_id] = budget
                case "trains here":
                    pass  # try again at the next `submit`
                case tuple() as after:
                    first = {*after, self.after} if self.after else set(after)
                    groups.setdefault((budget, tuple(sorted(first))), []).append(run_id)
        return groups

    def _submit_array(
        self, runs: tuple[str, ...], budget_gpu_hours: float, after: tuple[str, ...], snapshot: Path
    ) -> Submission:
        submission = new_submission(self.sweep, runs, budget_gpu_hours, snapshot, self.resources.model_dump())
        submission.write(self.home)
        executor = submitit.SlurmExecutor(log_folder(self.home, submission))
        asked = parameters(self.home, submission, self.resources, threads=self.threads, hold=self.hold, after=after)
        executor.update_parameters(**asked)
        watch = trap_folder(self.home, submission)
        try:
            with as_outside_of_jobs(), executor.batch():
                jobs = [
                    executor.submit(SlurmJob(self.home.path, self.sweep, run, budget_gpu_hours, watch)) for run in runs
                ]
        except BaseException as error:
            with suppress(SlurmError):  # without an answer, the record stays for `forget_interrupted`
                undo(self.home, submission)
            if isinstance(error, FailedJobError | FailedSubmissionError):
                raise self._refusal(runs, str(error)) from None
            raise
        submission = replace(submission, job=jobs[0].job_id.partition("_")[0])
        submission.write(self.home)
        return submission

    def _refusal(self, runs: tuple[str, ...], said: str) -> SlurmError:
        words = " ".join(said.replace("sbatch: error:", "").split())
        text = f"{self.sweep}: sbatch rejected the job of {counted(len(runs), 'run')}: {words}"
        if commands.SILENT.search(said):
            return SlurmSilent(text)
        after = f", and --after {self.after}" if self.after else ""
        return SlurmError(f"{text}; check the resources: block of the sweep and of its scale{after}")


def whether_to_submit(
    state: State, queued: Sequence[tuple[Submission, Job]], budget_gpu_hours: float
) -> Literal["done", "has a job", "trains here"] | tuple[str, ...]:
    """What a run with this budget needs; `queued` are its waiting and running jobs.

    "has a job" that trains it to the budget; "trains here" in a process on this machine, perhaps to a smaller budget;
    else a new job, which starts when the jobs with these ids have ended.

    A job cancelled a moment ago stays in the queue until its node has ended it, but trains no further. The new job
    waits only for that task, and for the whole array of any other job.
    """
    if state.is_finished:
        return "done"
    staying = [(one, job) for one, job in queued if state != State.CANCELLED or job.waits]
    if any(one.budget_gpu_hours >= budget_gpu_hours for one, _ in staying):
        return "has a job"
    if state == State.RUNNING and not queued:
        return "trains here"
    before = (one.job if (one, job) in staying else job.id for one, job in queued)
    return tuple(sorted({job for job in before if job}))


@contextmanager
def as_outside_of_jobs() -> Iterator[None]:
    """Hide Slurm's variables for the enclosing job from this process; sbatch would read them as options."""
    before = dict(os.environ)
    kept = commands.outside_of_jobs(before)
    for name in before.keys() - kept.keys():
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(before)
