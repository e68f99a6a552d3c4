"""The protocol of what trains the runs of a sweep: processes on this machine, or Slurm jobs."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

from ablations.home.cancellation import Cancellation


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A run ended before it was done: `Ended(run="3f0c9a1b2d4e", why="timed out; job 17_3: ...")`."""

    run: str
    why: str
    """For the user, without the run's name."""


@dataclass(frozen=True, kw_only=True)
class Tick:
    """Nothing ended; the caller may look at the runs and decide."""


class Pool(Protocol):
    """Trains runs, each to a budget of its own."""

    @property
    def cancelled(self) -> Cancellation:
        """The pool starts none of these runs."""
        ...

    @property
    def where(self) -> str:
        """Where and how many at a time, to follow "3 runs to train"."""
        ...

    def add(self, run_id: str, budget_gpu_hours: float) -> None:
        """Train a run until its compute reaches the budget."""

    def stop(self, run_id: str) -> None:
        """Ask one run to write its checkpoint and end."""

    def is_busy(self, run_id: str) -> bool:
        """Whether a run waits or runs here."""
        ...

    def work(self) -> Generator[Ended | Tick, None, None]:
        """Train every run that was added before or between two events; returns when no run waits or trains."""
        ...
