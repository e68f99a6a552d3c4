"""Trains a sweep's runs as Slurm jobs, after clearing interrupted submissions and held jobs.

submitit loads slowly, so the pool is imported only when it is created.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.running.ending import all_ended
from ablations.running.executor import Executor
from ablations.running.reconcile import cancel_held, num_missing, prune
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
class OnSlurm(Executor):
    """Slurm jobs, one per run, which keep training when the command ends."""

    resources: Resources
    threads: int
    jobs: int
    hold: bool = False
    after: str | None = None
    prune: bool = False
    """Cancel the jobs of runs that left the sweep file."""
    agree: Callable[[int], None]
    """Called with the number of jobs before anything is written; raises if the user declines."""

    outlives_command: ClassVar[bool] = True
    interrupted: ClassVar[str] = (
        "Detached. Jobs keep training; to resume the sweep's decisions, run the same command again."
    )

    def ask(self, sweep: StartedSweep, num_to_come: int = 0) -> None:
        if num_jobs := num_missing(sweep) + num_to_come:
            self.agree(num_jobs)

    def pool(self, sweep: StartedSweep, console: Console) -> "SlurmPool":
        """The pool that submits the sweep's runs, after interrupted submissions and held jobs are cleared."""
        from ablations.slurm.pool import SlurmPool, forget_interrupted

        for name in forget_interrupted(sweep.home, sweep.name):
            console.print(f"{sweep.name}: submission {name} was interrupted; cancelled any job it had started")
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
        """Submit every run that is neither done nor queued; keep running only if the sweep has decisions to make."""
        if sweep.plan.stop is not None:
            super().train(study, sweep, tracking_uri, console)
            return
        pool = self.pool(sweep, console)
        for run in sweep.plan.runs:
            pool.add(run.id, sweep.plan.budget_gpu_hours)
        for submission in pool.submit():
            say(console, f"{sweep.name}: job {submission.job} trains {counted(len(submission.runs), 'run')}")
        rows = run_rows(sweep)
        say(console, f"{sweep.name}: {summary(sweep.plan, rows)}")
        if all_ended(sweep, rows):
            Tracker(sweep, tracking_uri).finish(console)
