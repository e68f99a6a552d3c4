"""Where a sweep's runs are trained, as `run_sweep` sees it: on this machine, or as Slurm jobs."""

from typing import Protocol

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.pools.pool import Pool
from ablations.study.expand import Study


class Executor(Protocol):
    """`OnThisMachine(threads=1, jobs=2)` or `OnSlurm(resources=resources, ...)`."""

    @property
    def jobs(self) -> int:
        """Runs that a search has in flight at a time."""
        ...

    @property
    def outlives_command(self) -> bool:
        """Whether runs keep training when the command ends."""
        ...

    @property
    def interrupted(self) -> str:
        """What an interrupted command says: what happens to its runs, and how to resume."""
        ...

    def ask(self, sweep: StartedSweep, num_to_come: int = 0) -> None:
        """Ask the user about the cost, before anything is written; a search has yet to propose `num_to_come` runs."""

    def pool(self, sweep: StartedSweep, console: Console) -> Pool:
        """What trains the sweep's runs."""
        ...

    def train(self, study: Study, sweep: StartedSweep, tracking_uri: str | None, console: Console) -> None:
        """Train the runs that have not reached the budget, or leave them to jobs that need no command."""
