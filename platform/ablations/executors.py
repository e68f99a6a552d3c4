"""Where the runs of a sweep train: processes of this machine, or jobs of Slurm's. Both are pools of runs.

submitit is slow to load and only needed here, so that each pool is imported when it is made.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rich.console import Console

from ablations.cancellation import Cancellation, cancellation
from ablations.counted import counted
from ablations.home import Home
from ablations.plan import Plan
from ablations.slurm.resources import Resources

if TYPE_CHECKING:
    from ablations.dispatch import LocalPool
    from ablations.slurm.pool import SlurmPool


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
        from ablations.dispatch import LocalPool

        return LocalPool(
            home=home,
            submissions=home.sweep(plan.sweep) / "submitit",
            threads=self.threads,
            jobs=self.jobs,
            cancelled=cancellation(home, plan.sweep),
        )


@dataclass(frozen=True, kw_only=True)
class OnSlurm:
    """Jobs of Slurm's."""

    resources: Resources
    threads: int
    """Processors of a run where the resources name none."""
    jobs: int
    """Runs that a search has in flight at a time."""
    hold: bool = False
    after: str | None = None
    prune: bool = False
    """Cancel the jobs of runs that left the sweep file."""
    agree: Callable[[int], None]
    """Called with the number of jobs before anything is written; raises when they are not wanted."""

    def ask(self, home: Home, plan: Plan, num_to_come: int = 0) -> None:
        """Ask whether what a sweep would submit is wanted, `num_to_come` runs of trials not proposed yet included."""
        from ablations.slurm.reconcile import num_missing

        if num_jobs := num_missing(home, plan) + num_to_come:
            self.agree(num_jobs)

    def pool(self, home: Home, plan: Plan, console: Console) -> "SlurmPool":
        """What submits a sweep's runs, after what went wrong in the queue before is put right."""
        from ablations.slurm.pool import SlurmPool, forget_interrupted
        from ablations.slurm.reconcile import cancel_held, prune

        for name in forget_interrupted(home, plan.sweep):
            console.print(
                f"{plan.sweep}: {name} was interrupted while it was submitted; its jobs, if any, are cancelled"
            )
        why, held = cancel_held(home, plan.sweep)
        if held:
            console.print(f"{plan.sweep}: {counted(len(held), 'held job')} cancelled, to be submitted again ({why})")
        if self.prune and (pruned := prune(home, plan)):
            console.print(f"{plan.sweep}: {counted(len(pruned), 'job')} of runs that left the sweep file cancelled")
        return SlurmPool(
            home=home,
            sweep=plan.sweep,
            resources=self.resources,
            threads=self.threads,
            cancelled=cancellation(home, plan.sweep),
            hold=self.hold,
            after=self.after,
        )
