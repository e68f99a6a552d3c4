"""The protocol for training the runs of a sweep, in processes on this machine, on a Ray cluster or as Slurm jobs."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

from ablations.home.cancellation import Cancellation


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A run ended before it was done: `Ended(run="3f0c9a1b2d4e", why="timed out; job 17_3: ...")`."""

    run: str
    why: str
    """The reason for the user, without the run's name."""


class Pool(Protocol):
    """Trains runs, each to its own budget."""

    @property
    def cancelled(self) -> Cancellation:
        """Runs that the pool does not start."""
        ...

    @property
    def where(self) -> str:
        """The place and the number of concurrent runs, to follow "3 runs to train"."""
        ...

    def add(self, run_id: str, budget_gpu_hours: float) -> None:
        """Train a run until its compute reaches the budget."""

    def stop(self, run_id: str) -> None:
        """Ask one run to save its checkpoint and end."""

    def is_busy(self, run_id: str) -> bool:
        """True if a run waits or trains here."""
        ...

    def work(self) -> Generator[Ended | None, None, None]:
        """Train all runs, including any added between two events; returns when no run waits or trains.

        None says that no run has ended; the caller may look at the runs and decide.
        """
        ...
