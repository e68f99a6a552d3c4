"""Trains runs in processes on this machine, through submitit's local executor, with a limit on concurrent runs.

submitit only starts the processes: how a run ended is read from its status file, never from a submitit result. Each
submission has its own folder, because submitit returns old results from a folder that is reused.
"""

import os
import signal
import time
import uuid
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import submitit

from ablations.home.cancellation import Cancellation
from ablations.home.home import Home
from ablations.home.state import State, ask_to_stop, read_state
from ablations.pools.gpus import dealt
from ablations.pools.job import THREAD_VARIABLES, train_here
from ablations.pools.pool import Ended, Tick
from ablations.signals import handled
from scalerl.environment import VISIBLE_GPUS, environment_with

RUNS_POLL_S = 0.5
STOP_LIMIT_S = 60.0
"""Seconds that interrupted runs get to save their checkpoints."""
NO_TIME_LIMIT_MIN = 60 * 24 * 365


@dataclass(frozen=True, kw_only=True)
class _Submission:
    """A job of this pool and the compute to which to train its run."""

    job: submitit.Job[None]
    budget_gpu_hours: float
    gpus: tuple[str, ...]


@dataclass(kw_only=True)
class LocalPool:
    """Trains runs on this machine, at most `jobs` at a time, each to its own budget.

    >>> pool.add("3f0c9a1b2d4e", 2000.0)
    >>> for event in pool.work(): ...
    """

    home: Home
    submissions: Path
    """The folder that contains one folder per submission."""
    threads: int
    """CPU threads per run."""
    jobs: int
    """Maximum number of concurrent runs."""
    cancelled: Cancellation
    """Runs that the pool does not start, or asks to stop if they train."""
    gpus: tuple[str, ...] = ()
    """GPUs of this machine; runs share them if there are more runs than GPUs."""
    gpus_of_run: int = 1
    """GPUs that a run can use."""
    say: Callable[[str], None] = print
    """Tells the user what the pool leaves behind."""
    _waiting: dict[str, float] = field(default_factory=dict)
    """Budgets of the runs not started yet, in the order added."""
    _running: dict[str, _Submission] = field(default_factory=dict)
    _stopping: set[str] = field(default_factory=set)
    """Training runs for which `stop` was called."""

    @property
    def where(self) -> str:
        """The place and the number of runs at a time."""
        return f", {self.jobs} at a time, in {self.home.path}"

    def add(self, run_id: str, budget_gpu_hours: float) -> None:
        """Train a run until its compute reaches the budget.

        A waiting run gets the new budget; a training run ends first, then resumes to the new budget.
        """
        self._waiting[run_id] = budget_gpu_hours

    def stop(self, run_id: str) -> None:
        """Ask one run to save its checkpoint and end; drop a run that is only waiting.

        The run may belong to a sweep that was killed but whose processes live on.
        """
        self._waiting.pop(run_id, None)
        if run_id in self._running:
            self._stopping.add(run_id)
        ask_to_stop(self.home.run(run_id))

    def is_busy(self, run_id: str) -> bool:
        """True if a run waits or trains here."""
        return run_id in self._waiting or run_id in self._running

    def work(self) -> Generator[Ended | Tick, None, None]:
        """Train all runs, including any added between two events; returns when no run waits or trains.

        At least two events per second. `Ended` reports a run whose process was killed; a failed run reports that in
        its own files. The pool waits for runs that other processes train. If the loop is interrupted, the pool asks its
        runs to save their checkpoints and stop, and waits for them.
        """
        try:
            while self._waiting or self._running:
                ended = self._reap()
                self._start()
                self._ask_to_stop(self._stopping)
                yield from ended or [Tick()]
                time.sleep(RUNS_POLL_S)
        finally:
            self._stop_all()

    def _start(self) -> None:
        if self.cancelled.is_whole:
            self._waiting.clear()
            self._ask_to_stop(self._running)
            return
        for run_id in [run_id for run_id in self._waiting if run_id in self.cancelled]:
            del self._waiting[run_id]
        self._ask_to_stop(run_id for run_id in self._running if run_id in self.cancelled)
        for run_id, budget_gpu_hours in list(self._waiting.items()):
            if len(self._running) >= self.jobs:
                return
            state = read_state(self.home.run(run_id), budget_gpu_hours).state
            if state.is_finished:  # another sweep has finished the run
                del self._waiting[run_id]
            elif state != State.RUNNING and run_id not in self._running:
                del self._waiting[run_id]
                gpus = dealt(self.gpus, self.gpus_of_run, [gpu for one in self._running.values() for gpu in one.gpus])
                job = self._submit(run_id, budget_gpu_hours, gpus)
                self._running[run_id] = _Submission(job=job, budget_gpu_hours=budget_gpu_hours, gpus=gpus)
            # Otherwise another sweep trains the run, or this one does to a smaller budget; check again later.

    def _submit(self, run_id: str, budget_gpu_hours: float, gpus: tuple[str, ...]) -> submitit.Job[None]:
        folder = self.submissions / f"{time.strftime('%Y%m%d-%H%M%S')}-{run_id}-{uuid.uuid4().hex[:6]}"
        executor = submitit.LocalExecutor(folder)
        executor.update_parameters(timeout_min=NO_TIME_LIMIT_MIN, name=run_id)
        run = self.home.run(run_id).path
        threads = {variable: str(self.threads) for variable in THREAD_VARIABLES}
        # A terminal sends Ctrl-C to all of its processes; jobs ignore Ctrl-C, and the sweep asks them to stop.
        with environment_with(threads), handled(signal.SIG_IGN, signal.SIGINT):
            visible = ",".join(gpus) if gpus else os.environ.get(VISIBLE_GPUS)
            return executor.submit(train_here, run, budget_gpu_hours, self.home.warm_starts, visible)

    def _reap(self) -> list[Ended]:
        """Drop jobs that ended; returns those whose process was killed."""
        killed = []
        for run_id, submission in list(self._running.items()):
            if not submission.job.done():
                continue
            del self._running[run_id]
            was_stopped = run_id in self._stopping
            self._stopping.discard(run_id)
            state = read_state(self.home.run(run_id), submission.budget_gpu_hours).state
            if was_stopped:
                continue
            if state == State.RUNNING or (state == State.CANCELLED and run_id not in self.cancelled):
                # Another sweep took the run first, or cancelled the run although this sweep needs it.
                self._waiting.setdefault(run_id, submission.budget_gpu_hours)
            elif state in (State.PENDING, State.STALE):
                why = f"the process was killed; to see its output, run `platform logs {run_id}`"
                killed.append(Ended(run=run_id, why=why))
        return killed

    def _ask_to_stop(self, run_ids: Iterable[str]) -> None:
        """Send SIGTERM to the runs that train; a run that is only starting gets the signal at the next call."""
        for run_id in run_ids:
            ask_to_stop(self.home.run(run_id))

    def _stop_all(self) -> None:
        deadline = time.monotonic() + STOP_LIMIT_S
        while any(not run.job.done() for run in self._running.values()) and time.monotonic() < deadline:
            self._ask_to_stop(self._running)
            time.sleep(RUNS_POLL_S)
        for run_id in [run_id for run_id, run in self._running.items() if not run.job.done()]:
            self.say(
                f"Run {run_id} is still finishing a step. It was asked to stop, will save its checkpoint and end by "
                f"itself; `platform status` shows it until then."
            )
