"""A sweep's runs as processes on this machine.

submitit is slow to load, so that the pool is imported when it is made.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.running.train_missing import train_missing
from ablations.study.expand import Study

if TYPE_CHECKING:
    from ablations.pools.local import LocalPool


@dataclass(frozen=True, kw_only=True)
class OnThisMachine:
    """Processes here, `jobs` at a time."""

    threads: int
    """Of one run."""
    jobs: int

    @property
    def outlives_command(self) -> bool:
        """Whether runs keep training when the command ends: it stops them."""
        return False

    @property
    def interrupted(self) -> str:
        """What an interrupted command says."""
        return "Stopped. Run the same command again to resume from the last checkpoints."

    def ask(self, sweep: StartedSweep, num_to_come: int = 0) -> None:
        """Runs on this machine cost nothing that the user must agree to."""

    def pool(self, sweep: StartedSweep, console: Console) -> "LocalPool":
        """What trains a sweep's runs."""
        from ablations.pools.local import LocalPool

        return LocalPool(
            home=sweep.home,
            submissions=sweep.folder / "submitit",
            threads=self.threads,
            jobs=self.jobs,
            cancelled=sweep.cancellation,
        )

    def train(self, study: Study, sweep: StartedSweep, tracking_uri: str | None, console: Console) -> None:
        """Train the runs that have not reached the budget."""
        train_missing(study, sweep, self.pool(sweep, console), tracking_uri, console)
