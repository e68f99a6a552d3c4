"""A rank beside the first: it plays the same run and writes no file but what it keeps of the learner.

python -m scalerl.run.follower '{"run": "...", "budget_gpu_hours": 4.0, "warm_starts": "...", "rank": 1, "world": 2,
                                 "store": "..."}'

The virtual clock is deterministic, so every rank draws the same prompts and decodes the same rollouts; only the passes
of an optimiser step are shared out. What depends on the time of day, when to save and when to stop, the first decides.
"""

import json
import os
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from torch.distributed import FileStore  # pyright: ignore[reportPrivateImportUsage]  torch does not list it

from scalerl.errors import Cancelled
from scalerl.learner.ranks import Ranks, join, leave
from scalerl.run.checkpoint import Manifest
from scalerl.run.loop import Run
from scalerl.run.metrics import LogMark, Row
from scalerl.run.run_folder import RunFolder
from scalerl.run.team import ready


class UnwrittenLog:
    """Takes the rows that the first rank writes."""

    def write(self, row: Row) -> None:
        """Nothing."""

    def sync(self) -> LogMark:
        """The mark of an empty log."""
        return LogMark(bytes=0, sha256=None)

    def close(self) -> None:
        """Nothing."""


class UnwrittenStatus:
    """Takes the status that the first rank writes."""

    damage = ""

    def beat(self, **_: Any) -> None:
        """Nothing."""

    def write(self, state: str, message: str = "") -> None:
        """Nothing."""


class Follower(Run):
    """A run of which nothing reaches the disk but what this rank keeps of the learner."""

    def _open_log(self, mark: LogMark) -> UnwrittenLog:
        return UnwrittenLog()

    def _open_rollouts(self, mark: LogMark) -> UnwrittenLog:
        return UnwrittenLog()

    def _write_left_out(self) -> None:
        """The first rank does."""

    def _write_checkpoint(self, state: dict[str, Any], log: LogMark) -> Manifest | None:
        self.cluster.learner.write_kept(self.folder.checkpoint)  # which the first rank puts where the others write

    def _write_model(self) -> None:
        self.cluster.learner.weights()  # which the first rank gathers to write them


def follow(orders: dict[str, Any]) -> None:
    """Play the run until the first rank ends it."""
    rank, world = orders["rank"], orders["world"]
    if torch.cuda.is_available():
        torch.cuda.set_device(rank)

    def meet() -> Ranks:
        store = FileStore(orders["store"], world)
        store.set(ready(rank), "")
        return join(store, rank=rank, world=world)

    run = Follower(
        RunFolder(Path(orders["run"])),
        Path(orders["warm_starts"]),
        UnwrittenStatus(),
        threading.Event(),
        join=meet,
    )
    with closing(run):
        run.advance(orders["budget_gpu_hours"])


def end_with_the_first() -> None:
    """End at once when the first rank has ended, which closes our input."""
    os.read(sys.stdin.fileno(), 1)  # it never writes: this returns at the end of the input
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with_the_first, daemon=True).start()
    try:
        follow(json.loads(sys.argv[1]))
    except Cancelled:
        pass
    finally:
        leave()
