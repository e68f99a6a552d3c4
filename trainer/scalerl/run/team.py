"""The other ranks of a run's learner, as its own process sees them: started, watched and ended.

Each is a process that plays the same run (`scalerl.run.follower`). They start when the learner is made, so that the
warm start is trained once, and they end with this process, however it ends: their input is a pipe that it holds.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from torch.distributed import DistError, FileStore  # pyright: ignore[reportPrivateImportUsage]  torch does not list it

from scalerl.learner.ranks import ALONE, LIMIT, RankDied, Ranks, join, leave
from scalerl.processes.launch import BURIAL_LIMIT_S, no_signals
from scalerl.recipe import ResolvedRecipe

POLL_S = 0.05


class Team:
    """The ranks of one attempt, this process among them."""

    def __init__(self, recipe: ResolvedRecipe, run: Path, *, budget_gpu_hours: float, warm_starts: Path) -> None:
        self.settings = recipe.learner
        self._is_alone = recipe.learner.type == "torch" or recipe.cluster.type == "wall"
        """On the wall clock the ranks are processes apart (`scalerl.processes.remote_learner`)."""
        self._orders = {"run": str(run), "budget_gpu_hours": budget_gpu_hours, "warm_starts": str(warm_starts)}
        self._meeting = tempfile.TemporaryDirectory(prefix="ranks-")
        self._processes: list[subprocess.Popen[bytes]] = []

    def join(self) -> Ranks:
        """Start the others and meet them; RankDied where one does not get so far."""
        if self._is_alone:
            return ALONE
        world = self.settings.ranks
        place = Path(self._meeting.name) / "store"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        for rank in range(1, world):
            orders = json.dumps({**self._orders, "rank": rank, "world": world, "store": str(place)})
            command = [sys.executable, "-m", "scalerl.run.follower", orders]
            with no_signals():
                self._processes.append(
                    subprocess.Popen(
                        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment, bufsize=0
                    )
                )
        store = FileStore(str(place), world)
        self._wait_until_ready(store)
        return join(store, rank=0, world=world)

    def __enter__(self) -> "Team":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the others; RankDied in place of what this process saw of the death of one."""
        of_connection = type(error) is RuntimeError or isinstance(error, DistError)
        died = self._death(BURIAL_LIMIT_S) if of_connection else None
        self._close()
        if died is not None:
            raise RankDied(died) from error

    def _wait_until_ready(self, store: Any) -> None:
        """Until every other rank has come to the meeting."""
        limit = time.monotonic() + LIMIT.total_seconds()
        while not store.check([ready(rank) for rank in range(1, self.settings.ranks)]):
            if died := self._death(0.0):
                raise RankDied(died)
            if time.monotonic() > limit:
                raise RankDied(f"the learner's ranks did not meet within {LIMIT}")
            time.sleep(POLL_S)

    def _death(self, limit_s: float) -> str | None:
        """Which rank ended and how, waiting at most so long for one; None if all live."""
        limit = time.monotonic() + limit_s
        while True:
            for rank, process in enumerate(self._processes, start=1):
                code = process.poll()
                if code:
                    how = f"signal {-code}" if code < 0 else f"exit code {code}, see the log"
                    return f"rank {rank} of the learner's {self.settings.ranks} died ({how})"
            if time.monotonic() >= limit:
                return None
            time.sleep(POLL_S)

    def _close(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes:
            try:
                process.wait(BURIAL_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        leave()
        self._meeting.cleanup()


def ready(rank: int) -> str:
    """The word that a rank leaves at the meeting."""
    return f"rank {rank} is here"
