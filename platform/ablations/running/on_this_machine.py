"""Trains a sweep's runs in processes on this machine.

submitit loads slowly, so the pool is imported only when it is created.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.running.executor import Executor

if TYPE_CHECKING:
    from ablations.pools.command_pool import CommandPool


@dataclass(frozen=True, kw_only=True)
class OnThisMachine(Executor):
    """Processes on this machine, at most `jobs` at a time."""

    threads: int
    """Threads of one run."""
    jobs: int
    gpus: tuple[str, ...] = ()
    """GPUs of this machine."""
    gpus_of_run: int = 1
    """GPUs that a run can use."""

    def pool(self, sweep: StartedSweep, console: Console) -> "CommandPool":
        from ablations.pools.command_pool import CommandPool
        from ablations.pools.local import ThisMachine

        site = ThisMachine(
            home=sweep.home,
            submissions=sweep.folder / "submitit",
            threads=self.threads,
            gpus=self.gpus,
            gpus_of_run=self.gpus_of_run,
        )
        return CommandPool(home=sweep.home, site=site, jobs=self.jobs, cancelled=sweep.cancellation, say=console.print)
