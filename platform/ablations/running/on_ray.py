"""Trains a sweep's runs on a Ray cluster, for as long as the command lives."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.running.executor import Executor

if TYPE_CHECKING:
    from ablations.pools.command_pool import CommandPool
    from ablations.ray.driver_process import DriverProcess
    from ablations.ray.order import NodeShare


@dataclass(frozen=True, kw_only=True)
class OnRay(Executor):
    """Actors of a Ray cluster, one per node of a run, at most `jobs` runs at a time."""

    share: "NodeShare"
    threads: int
    """Threads of one process."""
    jobs: int
    driver: "DriverProcess"

    def pool(self, sweep: StartedSweep, console: Console) -> "CommandPool":
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
