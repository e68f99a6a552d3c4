"""The place where a sweep's runs train, as `run_sweep` sees it: this machine, Slurm or a Ray cluster."""

from typing import Protocol

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.pools.pool import Pool
from ablations.study.expand import Study


class Executor(Protocol):
    """The place of training: `OnThisMachine(threads=1, jobs=2)`, `OnSlurm(resources=resources, ...)` or `OnRay`."""

    @property
    def jobs(self) -> int:
        """Number of runs that a search keeps in flight."""
        ...

    @property
    def outlives_command(self) -> bool:
        """True if runs keep training when the command ends."""
        ...

    @property
    def interrupted(self) -> str:
        """The message of an interrupted command: what happens to the runs, and how to resume."""
        ...

    def ask(self, sweep: StartedSweep, num_to_come: int = 0) -> None:
        """Confirm the cost with the user before anything is written; a search will propose `num_to_come` more runs."""

    def pool(self, sweep: StartedSweep, console: Console) -> Pool:
        """The pool that trains the sweep's runs."""
        ...

    def train(self, study: Study, sweep: StartedSweep, tracking_uri: str | None, console: Console) -> None:
        """Train the runs that have not reached the budget, or hand them to jobs that need no command."""
