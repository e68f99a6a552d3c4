"""What places have in common that train a sweep's runs for as long as its command lives."""

from typing import TYPE_CHECKING

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.running.train_missing import train_missing
from ablations.study.expand import Study

if TYPE_CHECKING:
    from ablations.pools.command_pool import CommandPool


class WithCommand:
    """A place whose runs stop when the command ends."""

    @property
    def outlives_command(self) -> bool:
        """False: the command stops its runs when it ends."""
        return False

    @property
    def interrupted(self) -> str:
        """The message of an interrupted command."""
        return "Stopped. Run the same command again to resume from the last checkpoints."

    def ask(self, sweep: StartedSweep, num_to_come: int = 0) -> None:
        """Ask nothing: no cost is known that the user must confirm."""

    def pool(self, sweep: StartedSweep, console: Console) -> "CommandPool":
        """The pool that trains the sweep's runs."""
        raise NotImplementedError

    def train(self, study: Study, sweep: StartedSweep, tracking_uri: str | None, console: Console) -> None:
        """Train the runs that have not reached the budget."""
        train_missing(study, sweep, self.pool(sweep, console), tracking_uri, console)
