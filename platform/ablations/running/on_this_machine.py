"""A sweep's runs as processes on this machine.

submitit is slow to load, so that the pool is imported when it is made.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from ablations.home.cancellation import cancellation
from ablations.home.home import Home
from ablations.home.plan import Plan

if TYPE_CHECKING:
    from ablations.pools.local import LocalPool


@dataclass(frozen=True, kw_only=True)
class OnThisMachine:
    """Processes here, `jobs` at a time."""

    threads: int
    """Of one run."""
    jobs: int

    def pool(self, home: Home, plan: Plan, _: Console) -> "LocalPool":
        """What trains a sweep's runs."""
        from ablations.pools.local import LocalPool

        return LocalPool(
            home=home,
            submissions=home.sweep(plan.sweep) / "submitit",
            threads=self.threads,
            jobs=self.jobs,
            cancelled=cancellation(home, plan.sweep),
        )
