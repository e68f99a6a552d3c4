"""The place where a sweep's runs train, as `run_sweep` sees it: this machine, Slurm or a Ray cluster."""

from abc import ABC, abstractmethod
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.pools.command_pool import CommandPool, Site
from ablations.pools.pool import Pool
from ablations.report.writers.terminal_table import TerminalTable
from ablations.status.live_table import LiveStatus, say
from ablations.status.notifier import Notifier
from ablations.status.progress import run_rows
from ablations.status.table import status_table, summary
from ablations.study.expand import Study
from ablations.text import counted
from ablations.tracking.beside_a_sweep import Tracker


class Executor(ABC):
    """The place of training: `InCommand(site=site, jobs=2)` or `OnSlurm(resources=resources, ...)`.

    Unless a place says otherwise, its runs stop when the command ends, and cost nothing that the user must confirm.
    """

    jobs: int
    """Number of runs that a search keeps in flight."""
    outlives_command: ClassVar[bool] = False
    """True if runs keep training when the command ends."""
    interrupted: ClassVar[str] = "Stopped. Run the same command again to resume from the last checkpoints."
    """The message of an interrupted command: what happens to the runs, and how to resume."""

    def ask(self, sweep: StartedSweep, num_to_come: int = 0) -> None:
        """Confirm the cost with the user before anything is written; a search will propose `num_to_come` more runs."""

    @abstractmethod
    def pool(self, sweep: StartedSweep, console: Console) -> Pool:
        """The pool that trains the sweep's runs."""

    def train(self, study: Study, sweep: StartedSweep, tracker: Tracker, console: Console) -> None:
        """Train the runs that have not reached the budget, or hand them to jobs that outlive the command."""
        train_missing(study, sweep, self.pool(sweep, console), tracker, console)


@dataclass(frozen=True, kw_only=True)
class InCommand(Executor):
    """This machine or a Ray cluster, at most `jobs` runs at a time, for as long as the command lives."""

    site: Site
    jobs: int
    holds: bool = False
    """Start no more runs after three equal failures in a row."""

    def pool(self, sweep: StartedSweep, console: Console) -> CommandPool:
        return CommandPool(
            home=sweep.home,
            site=self.site,
            jobs=self.jobs,
            cancelled=sweep.cancellation,
            holds=self.holds,
            has_trained=any(row.state.step > 0 for row in run_rows(sweep)),
            say=console.print,
        )


def train_missing(study: Study, sweep: StartedSweep, pool: Pool, tracker: Tracker, console: Console) -> None:
    """Train the runs that have not reached the budget, and keep MLflow up to date."""
    from ablations.steering.steering import Steering  # loads SciPy, which --dry-run does without

    names = {run.id: run.variant for run in study.runs}
    steering = Steering(study, sweep)
    missing = steering.begin()
    for run_id in steering.stopped:  # stopped by a killed sweep, whose jobs live on
        pool.stop(run_id)
    notifier = Notifier(console)
    if missing:
        say(console, f"{sweep.name}: {len(missing)} of {counted(len(names), 'run')} to train{pool.where}")
        for run_id in missing:
            pool.add(run_id, sweep.plan.budget_gpu_hours)
        with LiveStatus(console) as progress, closing(pool.work()) as events:
            for event in events:
                if event:
                    say(console, f"{names[event.run]}: {event.why}")
                for said in steering.steer(pool):
                    say(console, said)
                rows = progress.update(sweep)
                notifier.look(sweep, rows, now=event is not None)
                tracker.look(row.state for row in rows)
        rows = run_rows(sweep)
        notifier.look(sweep, rows, now=True)
        say(console, f"{sweep.name}: {summary(sweep.plan, rows)}")
    if sweep.plan.stop is not None:  # the stopped runs with the reasons
        console.print(TerminalTable.of(status_table(sweep, run_rows(sweep))))
    tracker.begin_last()
