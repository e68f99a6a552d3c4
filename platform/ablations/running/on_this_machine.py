"""A sweep's runs as processes on this machine.

submitit is slow to load, so that the pool is imported when it is made.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from ablations.home.started_sweep import StartedSweep

if TYPE_CHECKING:
    from ablations.pools.local import LocalPool


@dataclass(frozen=True, kw_only=True)
class OnThisMachine:
    """Processes here, `jobs` at a time."""

    threads: int
    """Of one run."""
    jobs: int

    def pool(self, sweep: StartedSweep, _: Console) -> "LocalPool":
        """What trains a sweep's runs."""
        from ablations.pools.local import LocalPool

        return LocalPool(
            home=sweep.home,
            submissions=sweep.folder / "submitit",
            threads=self.threads,
            jobs=self.jobs,
            cancelled=sweep.cancellation,
        )
