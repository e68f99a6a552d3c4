"""Where the runs of a sweep train: processes of this machine, or jobs of Slurm's. Both are pools of runs.

submitit is slow to load and only needed here, so that each pool is imported when it is made.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rich.console import Console

from ablations.home.cancellation import Cancellation, cancellation
from ablations.home.home import Home
from ablations.home.plan import Plan

if TYPE_CHECKING:
    from ablations.pools.local import LocalPool


class Pool(Protocol):
    """Trains runs, each to a budget of its own."""

    @property
    def cancelled(self) -> Cancellation:
        """Runs in it are not started."""
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

    def work(self) -> Generator[str | None, None, None]:
        """Train all that is added, also meanwhile; yields runs that ended without being done, and None in between."""
        ...

    def ending(self, run_id: str) -> str:
        """How a run ended that `work` yielded."""
        ...


@dataclass(frozen=True, kw_only=True)
class OnThisMachine:
    """Processes here, `jobs` at a time."""

    threads: int
    """Of one run."""
    jobs: int

    def pool(self, home: Home, plan: Plan, _: Console) -> "LocalPool":
        """What trains a sweep's runs."""
        from ablations.pools.local import LocalPool

        return LocalPool(
            home=home,
            submissions=home.sweep(plan.sweep) / "submitit",
            threads=self.threads,
            jobs=self.jobs,
            cancelled=cancellation(home, plan.sweep),
        )
