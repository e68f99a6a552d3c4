"""Trains runs for as long as this command lives, at most `jobs` at a time, at a site that starts their jobs.

The site is this machine (`ablations.pools.local`) or a Ray cluster (`ablations.ray.ray_site`). How a run ended is read
from its status file; a job only says that it is over, and whether it was lost with its machine.
"""

import math
import signal
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from ablations.home.cancellation import Cancellation
from ablations.home.home import Home
from ablations.home.state import RunState, State, read_state, wait_again
from ablations.pools.equal_failures import EQUAL_FAILURES, FIRST_FAILURES, RunsHeld, equal_failures, held_because
from ablations.pools.pool import Ended
from ablations.signals import interrupts_wait
from ablations.text import counted

MOST_LOSSES = 3
"""Number of consecutive losses without a completed step, after which a run is not restarted."""


class Losses:
    """The losses of each run: its progress at the last loss, and the number of consecutive losses at that progress."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[tuple[int, int], int]] = {}

    def add(self, run_id: str, own: RunState) -> str:
        """Count a loss of a run in this state; returns the reason if the run is given up."""
        progress = (own.step, own.warm_start_step)
        before, times = self._last.get(run_id, (progress, 0))
        times = times + 1 if before == progress else 1
        self._last[run_id] = progress, times
        return f"lost {times} times in a row without completing a step; giving up" if times >= MOST_LOSSES else ""


RUNS_POLL_S = 0.5
STOP_LIMIT_S = 60.0
"""Seconds that interrupted runs get to save their checkpoints."""


class SiteJob(Protocol):
    """A started job of one run."""

    why: str
    """Why the job ended, if something else ended it and the reason is known; else empty."""
    is_lost: bool
    """True if the job ended because it lost its machine or its place there."""

    def done(self) -> bool:
        """True once the job is over."""
        ...


class Site(Protocol):
    """A place that starts jobs."""

    @property
    def name(self) -> str:
        """The site in words, to follow "2 at a time"; empty for this machine."""
        ...

    def start(self, run_id: str, budget_gpu_hours: float) -> SiteJob:
        """Start a job that trains a run to the budget."""
        ...

    def ask_to_stop(self, run_id: str) -> None:
        """Have the process that trains a run save a checkpoint and end; a job that is only starting is asked again."""


@dataclass(kw_only=True)
class CommandPool:
    """Trains runs at a site, at most `jobs` at a time, each to its own budget.

    >>> pool.add("3f0c9a1b2d4e", 2000.0)
    >>> for event in pool.work(): ...
    """

    home: Home
    site: Site
    jobs: int
    """Maximum number of concurrent runs."""
    cancelled: Cancellation
    """Runs that the pool does not start, or asks to stop if they train."""
    holds: bool = False
    """Start no more runs after three equal failures in a row."""
    has_trained: bool = False
    """True if a run of the sweep has trained. Until one has, the pool starts no more runs after two equal failures."""
    say: Callable[[str], None] = print
    """Tells the user about processes that the pool leaves running."""
    _waiting: dict[str, float] = field(default_factory=dict)
    """Budgets of the runs not started yet, in the order added."""
    _running: dict[str, tuple[SiteJob, float]] = field(default_factory=dict)
    """The job of each training run, and the compute to which it trains the run."""
    _stopping: set[str] = field(default_factory=set)
    """Training runs for which `stop` was called."""
    _losses: Losses = field(default_factory=Losses)
    _ends: list[tuple[State, str]] = field(default_factory=list)
    """How the runs of this pool have ended, in chronological order."""

    @property
    def where(self) -> str:
        return f", {self.jobs} at a time{self.site.name}, in {self.home.path}"

    def add(self, run_id: str, budget_gpu_hours: float) -> None:
        """Train a run until its compute reaches the budget.

        A waiting run gets the new budget; a training run ends first, then resumes to the new budget.
        """
        self._waiting[run_id] = budget_gpu_hours
        wait_again(self.home.run(run_id), budget_gpu_hours)

    def stop(self, run_id: str) -> None:
        """Ask one run to save its checkpoint and end; drop a run that is only waiting.

        The run may belong to a sweep that was killed but whose processes live on.
        """
        self._waiting.pop(run_id, None)
        if run_id in self._running:
            self._stopping.add(run_id)
        self.site.ask_to_stop(run_id)

    def is_busy(self, run_id: str) -> bool:
        return run_id in self._waiting or run_id in self._running

    def work(self) -> Generator[Ended | None, None, None]:
        """Train all runs, including any added between two events; returns when no run waits or trains.

        At least two events per second. `Ended` reports a run whose process was killed; a failed run reports that in
        its own files. The pool waits for runs that other processes train. If the loop is interrupted, the pool asks its
        runs to save their checkpoints and stop, and waits for them.

        Raises RunsHeld if equal failures hold the runs that wait, once the others have ended.
        """
        try:
            while self._waiting or self._running:
                ended = self._reap()
                held = self._held()
                if not held:
                    self._start()
                elif self._waiting and not self._running:
                    raise RunsHeld(
                        f"{held}; {counted(len(self._waiting), 'run')} not started. Fix the cause, then run the same "
                        f"command again"
                    )
                self._ask_to_stop(self._stopping)
                yield from ended or [None]
                time.sleep(RUNS_POLL_S)
        finally:
            self._stop_all()

    def _held(self) -> str:
        """Why no more runs start; empty if they do."""
        if (message := equal_failures(self._ends, FIRST_FAILURES)) is None:
            return ""
        if not self.has_trained:
            states = [read_state(self.home.run(run_id), math.inf) for run_id in (*self._waiting, *self._running)]
            self.has_trained = any(state.step > 0 for state in states)
        if not self.has_trained:
            return held_because(message, FIRST_FAILURES)
        return held_because(message) if self.holds and equal_failures(self._ends, EQUAL_FAILURES) else ""

    def _start(self) -> None:
        if self.cancelled.is_whole:
            self._waiting.clear()
            self._ask_to_stop(self._running)
            return
        for run_id in [run_id for run_id in self._waiting if run_id in self.cancelled]:
            del self._waiting[run_id]
        self._ask_to_stop(run_id for run_id in self._running if run_id in self.cancelled)
        if len(self._running) >= self.jobs:
            return
        states = {run_id: read_state(self.home.run(run_id), budget) for run_id, budget in self._waiting.items()}
        # Those that a killed sweep left training on this machine, or another sweep trains here, take places too.
        training = self._running.keys() | {run_id for run_id, state in states.items() if state.pid is not None}
        for run_id, budget_gpu_hours in list(self._waiting.items()):
            state = states[run_id].state
            if state.is_finished:  # another sweep has finished the run
                del self._waiting[run_id]
            elif state != State.RUNNING and run_id not in self._running and len(training) < self.jobs:
                del self._waiting[run_id]
                # A terminal sends Ctrl-C to all of its processes; jobs ignore Ctrl-C, and the pool asks them to stop.
                with interrupts_wait(signal.SIGINT):
                    self._running[run_id] = self.site.start(run_id, budget_gpu_hours), budget_gpu_hours
                training.add(run_id)
            # Otherwise there is no place, another sweep trains it, or this one does to a smaller budget; check later.

    def _reap(self) -> list[Ended]:
        """Drop jobs that ended; returns those whose process was killed."""
        killed = []
        for run_id, (job, budget_gpu_hours) in list(self._running.items()):
            if not job.done():
                continue
            del self._running[run_id]
            was_stopped = run_id in self._stopping
            self._stopping.discard(run_id)
            own = read_state(self.home.run(run_id), budget_gpu_hours)
            self.has_trained |= own.step > 0
            is_lost = job.is_lost and not own.state.is_finished and own.state != State.CANCELLED
            if own.state.is_finished or (own.state == State.FAILED and not is_lost):
                self._ends.append((own.state, own.message))
            if was_stopped:
                continue
            if is_lost:
                killed.append(self._lost(run_id, budget_gpu_hours, job.why, own))
            elif own.state == State.RUNNING or (own.state == State.CANCELLED and run_id not in self.cancelled):
                # Another sweep took the run first, or cancelled the run although this sweep needs it.
                self._waiting.setdefault(run_id, budget_gpu_hours)
            elif own.state in (State.PENDING, State.STALE):
                command = f"platform logs {run_id}{self.home.end_of_command}"
                why = f"the process was killed; to see its output, run `{command}`"
                killed.append(Ended(run=run_id, why=job.why or why))
        return killed

    def _lost(self, run_id: str, budget_gpu_hours: float, why: str, own: RunState) -> Ended:
        """Have a lost run go on from its checkpoint, unless it is lost again and again without a step between."""
        if given_up := self._losses.add(run_id, own):
            return Ended(run=run_id, why=f"{why}; {given_up}")
        self._waiting = {run_id: budget_gpu_hours} | self._waiting  # before those that have not begun
        wait_again(self.home.run(run_id), budget_gpu_hours)
        return Ended(run=run_id, why=f"{why}; it resumes from its last checkpoint")

    def _ask_to_stop(self, run_ids: Iterable[str]) -> None:
        for run_id in run_ids:
            self.site.ask_to_stop(run_id)

    def _stop_all(self) -> None:
        deadline = time.monotonic() + STOP_LIMIT_S
        while any(not job.done() for job, _ in self._running.values()) and time.monotonic() < deadline:
            self._ask_to_stop(self._running)
            time.sleep(RUNS_POLL_S)
        for run_id in [run_id for run_id, (job, _) in self._running.items() if not job.done()]:
            self.say(
                f"Run {run_id} is still finishing a step. It was asked to stop, will save its checkpoint and end by "
                f"itself; `platform status{self.home.end_of_command}` shows it until then."
            )
