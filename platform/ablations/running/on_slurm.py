"""A sweep's runs as Slurm jobs: how they are submitted, and what is mended in the queue before.

submitit loads slowly, so the pool is imported when it is made.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.running.ending import all_ended
from ablations.running.train_missing import train_missing
from ablations.status.live import say
from ablations.status.progress import run_rows
from ablations.status.table import summary
from ablations.study.expand import Study
from ablations.study.resources import Resources
from ablations.text import counted
from ablations.tracking.beside_a_sweep import Tracker

if TYPE_CHECKING:
    from ablations.slurm.pool import SlurmPool


@dataclass(frozen=True, kw_only=True)
class OnSlurm:
    """Slurm jobs, one per run."""

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
    """Called with the number of jobs before anything is written; raises if the user does not want them."""

    @property
    def outlives_command(self) -> bool:
        """Whether runs keep training when the command ends: Slurm runs them."""
        return True

    @property
    def interrupted(self) -> str:
        """What an interrupted command says."""
        return "Detached. Jobs keep training; run the same command again to resume deciding."

    def ask(self, sweep: StartedSweep, num_to_come: int = 0) -> None:
        """Ask the user about the cost of what a sweep would submit, `num_to_come` runs of a search included."""
        from ablations.running.reconcile import num_missing

        if num_jobs := num_missing(sweep) + num_to_come:
            self.agree(num_jobs)

    def pool(self, sweep: StartedSweep, console: Console) -> "SlurmPool":
        """What submits the sweep's runs; interrupted submissions and held jobs are cleared away first."""
        from ablations.running.reconcile import cancel_held, prune
        from ablations.slurm.pool import SlurmPool, forget_interrupted

        for name in forget_interrupted(sweep.home, sweep.name):
            console.print(f"{sweep.name}: submission {name} was interrupted; any job that it started is cancelled")
        why, held = cancel_held(sweep)
        if held:
            console.print(f"{sweep.name}: cancelled {counted(len(held), 'held job')} to submit new ones ({why})")
        if self.prune and (pruned := prune(sweep)):
            console.print(f"{sweep.name}: cancelled {counted(len(pruned), 'job')} of runs that left the sweep file")
        return SlurmPool(
            home=sweep.home,
            sweep=sweep.name,
            resources=self.resources,
            threads=self.threads,
            cancelled=sweep.cancellation,
            hold=self.hold,
            after=self.after,
        )

    def train(self, study: Study, sweep: StartedSweep, tracking_uri: str | None, console: Console) -> None:
        """Submit the runs that have not reached the budget; stay only while the sweep decides something."""
        pool = self.pool(sweep, console)
        if sweep.plan.stop is not None:
            train_missing(study, sweep, pool, tracking_uri, console)
        else:
            submit_missing(sweep, pool, tracking_uri, console)


def submit_missing(sweep: StartedSweep, pool: "SlurmPool", tracking_uri: str | None, console: Console) -> None:
    """Give Slurm every run that is not done and has no job there; its jobs need no command of ours."""
    for run in sweep.plan.runs:
        pool.add(run.id, sweep.plan.budget_gpu_hours)
    for submission in pool.submit():
        say(console, f"{sweep.name}: job {submission.job} trains {counted(len(submission.runs), 'run')}")
    rows = run_rows(sweep)
    say(console, f"{sweep.name}: {summary(sweep.plan, rows)}")
    if all_ended(sweep, rows):
        Tracker(sweep, tracking_uri).finish(console)
