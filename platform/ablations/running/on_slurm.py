"""A sweep's runs as jobs of Slurm's: what is submitted with, and what is put right in the queue before.

submitit is slow to load, so that the pool is imported when it is made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.study.resources import Resources
from ablations.text import counted

if TYPE_CHECKING:
    from ablations.slurm.pool import SlurmPool


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

    def ask(self, sweep: StartedSweep, num_to_come: int = 0) -> None:
        """Ask whether what a sweep would submit is wanted, `num_to_come` runs of trials not proposed yet included."""
        from ablations.running.reconcile import num_missing

        if num_jobs := num_missing(sweep) + num_to_come:
            self.agree(num_jobs)

    def pool(self, sweep: StartedSweep, console: Console) -> "SlurmPool":
        """What submits a sweep's runs, after what went wrong in the queue before is put right."""
        from ablations.running.reconcile import cancel_held, prune
        from ablations.slurm.pool import SlurmPool, forget_interrupted

        for name in forget_interrupted(sweep.home, sweep.name):
            console.print(
                f"{sweep.name}: {name} was interrupted while it was submitted; its jobs, if any, are cancelled"
            )
        why, held = cancel_held(sweep)
        if held:
            console.print(f"{sweep.name}: {counted(len(held), 'held job')} cancelled, to be submitted again ({why})")
        if self.prune and (pruned := prune(sweep)):
            console.print(f"{sweep.name}: {counted(len(pruned), 'job')} of runs that left the sweep file cancelled")
        return SlurmPool(
            home=sweep.home,
            sweep=sweep.name,
            resources=self.resources,
            threads=self.threads,
            cancelled=sweep.cancellation,
            hold=self.hold,
            after=self.after,
        )
