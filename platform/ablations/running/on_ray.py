"""Trains a sweep's runs on a Ray cluster, for as long as the command lives."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.running.train_missing import train_missing
from ablations.study.expand import Study

if TYPE_CHECKING:
    from ablations.pools.command_pool import CommandPool
    from ablations.ray.driver_process import DriverProcess
    from ablations.ray.order import NodeShare


@dataclass(frozen=True, kw_only=True)
class OnRay:
    """Actors of a Ray cluster, one per node of a run, at most `jobs` runs at a time."""

    share: "NodeShare"
    threads: int
    """Threads of one process."""
    jobs: int
    driver: "DriverProcess"

    @property
    def outlives_command(self) -> bool:
        """False: the command stops its runs when it ends."""
        return False

    @property
    def interrupted(self) -> str:
        """The message of an interrupted command."""
        return "Stopped. Run the same command again to resume from the last checkpoints."

    def ask(self, sweep: StartedSweep, num_to_come: int = 0) -> None:
        """Ask nothing: the cluster is there, and Ray knows no price."""

    def pool(self, sweep: StartedSweep, console: Console) -> "CommandPool":
        """The pool that trains the sweep's runs."""
        from ablations.pools.command_pool import CommandPool
        from ablations.pools.snapshot import take_snapshot
        from ablations.ray.ray_site import RaySite

        site = RaySite(
            home=sweep.home,
            folder=sweep.folder / "ray",
            snapshot=take_snapshot(sweep.home),
            share=self.share,
            threads=self.threads,
            driver=self.driver,
        )
        return CommandPool(
            home=sweep.home,
            site=site,
            jobs=self.jobs,
            cancelled=sweep.cancellation,
            holds=True,
            say=console.print,
        )

    def train(self, study: Study, sweep: StartedSweep, tracking_uri: str | None, console: Console) -> None:
        """Train the runs that have not reached the budget."""
        train_missing(study, sweep, self.pool(sweep, console), tracking_uri, console)
