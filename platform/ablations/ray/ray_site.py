"""The Ray cluster as a site: each attempt at a run is an actor on one node, or one on each of several.

>>> site.start("81d2f0a95c3b", 2000.0)
"""

import os
import time
import uuid
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ablations.home.home import Home
from ablations.home.state import ask_to_stop
from ablations.pools.code_snapshot import take_snapshot
from ablations.ray.driver_process import DriverProcess, RayJob
from ablations.ray.order import NodeShare, RayOrder


@dataclass(kw_only=True)
class RaySite:
    """Starts runs on a Ray cluster, which has to share the home folder."""

    home: Home
    folder: Path
    """The sweep's folder for Ray's files: one folder per attempt, and the driver's output."""
    share: NodeShare
    threads: int
    driver: DriverProcess
    """Replaced by a new one if it is gone."""
    _jobs: dict[str, RayJob] = field(default_factory=dict)
    """The last job of each run."""

    @cached_property
    def snapshot(self) -> Path:
        """The folder of the code, copied when the first run starts."""
        return take_snapshot(self.home)

    @property
    def name(self) -> str:
        return f" on Ray at {self.driver.address}"

    def start(self, run_id: str, budget_gpu_hours: float) -> RayJob:
        """Have Ray find nodes for a run and train it to the budget; raises RayError if the cluster is gone."""
        if not self.driver.is_there:
            self.driver = DriverProcess(self.driver.log)
        attempt = self.folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{run_id}-{uuid.uuid4().hex[:6]}"
        order = RayOrder(
            run=self.home.run(run_id).path,
            warm_starts=self.home.warm_starts,
            budget_gpu_hours=budget_gpu_hours,
            share=self.share,
            threads=self.threads,
            snapshot=self.snapshot,
            directory=Path(os.getcwd()),
            allocation=attempt.name,
        )
        order.write(attempt)
        self._jobs[run_id] = self.driver.start(attempt)
        return self._jobs[run_id]

    def ask_to_stop(self, run_id: str) -> None:
        """Tell the node that trains a run to stop it."""
        if run_id in self._jobs and not self._jobs[run_id].done():
            self.driver.stop(self._jobs[run_id])
        else:
            ask_to_stop(self.home.run(run_id))
