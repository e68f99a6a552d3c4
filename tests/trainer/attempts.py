"""Attempts at a run in processes of their own that die at a stated moment: what a child of `test_train` executes.

A moment is `(event, count)`: the process kills itself the `count`-th time the event comes up.

    ("eval row", 2)           the second evaluation is in the log, not in a checkpoint
    ("train row", 5)          the fifth optimiser step is in the log
    ("checkpoint begun", 2)   metrics are durable, the second checkpoint is not written
    ("part written", 5)       the second part of the second checkpoint is under its temporary name
    ("checkpoint written", 2) all parts are there, the manifest is under its temporary name
    ("manifest renamed", 2)   the parts of the first checkpoint are still there
    ("previous renamed", 1)   both manifests name the first checkpoint, and the parts of the second are there
    ("checkpoint renamed", 2) whole, and nothing has happened since
"""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalerl.errors import Cancelled
from scalerl.run import checkpoint, loop
from scalerl.run.run_log import MetricsLog
from scalerl.run.train import train

Moment = tuple[str, int]


def attempt(path: Path, budget: float, warm_starts: Path, moment: Moment | None, kill: int = signal.SIGKILL) -> None:
    """Train the run and send the process `kill` at `moment`; its recipe says how often it writes checkpoints."""
    if moment is not None:
        watch(moment, kill)
    try:
        train(path, budget_gpu_hours=budget, warm_starts=warm_starts)
    except Cancelled:
        raise SystemExit(7) from None


def watch(moment: Moment, kill: int) -> None:
    event, count = moment
    left = [count]

    def reached(name: str) -> None:
        if name == event:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), kill)

    write_row, write, replace = MetricsLog.write, checkpoint.write_checkpoint, Path.replace

    def watched_row(self: MetricsLog, row: Mapping[str, Any]) -> None:
        write_row(self, row)
        reached(f"{row['kind']} row")

    def watched_checkpoint(*arguments: Any) -> checkpoint.Manifest:
        reached("checkpoint begun")
        written = write(*arguments)
        reached("checkpoint renamed")
        return written

    def watched_replace(self: Path, target: Path) -> Path:
        name, is_of_checkpoint = Path(target).name, "checkpoint" in Path(target).parent.name
        if is_of_checkpoint and name != checkpoint.PREVIOUS:
            reached("checkpoint written" if name == checkpoint.MANIFEST else "part written")
        replaced = replace(self, target)
        if is_of_checkpoint and name == checkpoint.MANIFEST:
            reached("manifest renamed")
        if is_of_checkpoint and name == checkpoint.PREVIOUS:
            reached("previous renamed")
        return replaced

    MetricsLog.write = watched_row
    loop.write_checkpoint = watched_checkpoint
    Path.replace = watched_replace


def hold(lock: Path, ready: Path) -> None:
    """Hold the lock of a run until killed, and say so by making `ready`."""
    from filelock import FileLock

    with FileLock(lock):
        ready.touch()
        signal.pause()
