"""Attempts at a run in processes of their own that die at a stated moment: what a child of `test_train` executes.

A moment is `(event, count)`: the process kills itself the `count`-th time the event comes up.

    ("eval row", 2)           the second evaluation is in the log, not in a checkpoint
    ("train row", 5)          the fifth optimiser step is in the log
    ("checkpoint begun", 2)   metrics are durable, the second checkpoint is not written
    ("checkpoint written", 2) under its temporary name, not yet renamed
    ("checkpoint renamed", 2) whole, and nothing has happened since
"""

import os
import signal
from pathlib import Path

import scalerl.run.train as scalerl_train
from scalerl.run import run_folder
from scalerl.run.metrics import MetricsLog
from scalerl.run.train import Cancelled, train

Moment = tuple[str, int]


def attempt(path: Path, budget: float, warm_starts: Path, moment: Moment | None, kill: int = signal.SIGKILL) -> None:
    """Train the run, checkpointing after every step, and send the process `kill` at `moment`."""
    scalerl_train.CHECKPOINT_EVERY_S = 0.0
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

    write_row, write_file, replace = MetricsLog.write, run_folder.write_atomically, Path.replace

    def watched_row(self: MetricsLog, row: dict) -> None:
        write_row(self, row)
        reached(f"{row['kind']} row")

    def watched_file(path: Path, content: bytes) -> None:
        if path.name == "checkpoint.pt":
            reached("checkpoint begun")
        write_file(path, content)
        if path.name == "checkpoint.pt":
            reached("checkpoint renamed")

    def watched_replace(self: Path, target: Path) -> Path:
        if Path(target).name == "checkpoint.pt":
            reached("checkpoint written")
        return replace(self, target)

    MetricsLog.write = watched_row
    scalerl_train.write_atomically = watched_file
    Path.replace = watched_replace


def hold(lock: Path, ready: Path) -> None:
    """Hold the lock of a run until killed, and say so by making `ready`."""
    from filelock import FileLock

    with FileLock(lock):
        ready.touch()
        signal.pause()
