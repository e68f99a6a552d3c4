"""Readings of many runs: what is kept is taken; the rest is read and fitted by as many processes as there are cores.

What a process finds is equal to the bit to what this one would: each fit uses one thread of the BLAS wherever it runs.
A worker that dies takes nothing with it; what it had in hand is done again here, where errors are said.
"""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from ablations.files.trees import NotATree
from ablations.fit.options import FitSettings
from ablations.readings.run_reading import RunReading, kept_reading, read_kept, reading_from_bytes
from ablations.terminal.progress_bar import Done
from scalerl.run.run_folder import RunFolder

FEWEST = 12
"""Runs that must be fitted before processes are started for it: their start takes as long as some of the fits."""
MOST_WORKERS = 16
"""A login node has more cores, and other users."""
LENGTH_BYTES = 8
MOST_BYTES = 1 << 30
"""Of one reading; those of 200 evaluations have 130 kB."""
WORKER = ["-m", "ablations.readings.reading_worker"]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """`Wanted(folder=home.run("3f0c9a1b2d4e"), name="scalerl-s0", settings=settings)`: one run, and how it is read."""

    folder: RunFolder
    name: str
    settings: FitSettings

    def line(self) -> bytes:
        """As a worker is asked for it."""
        content = {"folder": str(self.folder.path), "name": self.name, "settings": asdict(self.settings)}
        return json.dumps(content).encode() + b"\n"


def readings_of_runs(
    wanted: Sequence[Wanted], *, done: Done | None = None, workers: int | None = None
) -> list[RunReading]:
    """One for each of `wanted`, in order; `done` is called only where some must be fitted.

    `workers` is the number of processes, by default that of the cores that this process may use.
    """
    kept = [read_kept(one.folder, one.name, one.settings) for one in wanted]
    missing = [number for number, reading in enumerate(kept) if reading is None]
    found = dict[int, RunReading]()
    for number, reading in _fitted(wanted, missing, _num_workers(len(missing), workers)):
        found[number] = reading
        if done is not None:
            done(len(found), len(missing))
    return [reading if reading is not None else found[number] for number, reading in enumerate(kept)]


def _num_workers(num_missing: int, asked: int | None) -> int:
    if num_missing < FEWEST:
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_WORKERS) if asked is None else asked


def _fitted(wanted: Sequence[Wanted], missing: Sequence[int], num_workers: int) -> Iterator[tuple[int, RunReading]]:
    """Each missing one with its number, in the order in which they are done."""
    left = dict.fromkeys(missing)
    if num_workers > 1:
        for number, reading in _by_workers(wanted, missing, num_workers):
            del left[number]
            yield number, reading
    for number in left:
        one = wanted[number]
        yield number, kept_reading(one.folder, one.name, one.settings)


def _by_workers(wanted: Sequence[Wanted], missing: Sequence[int], num_workers: int) -> Iterator[tuple[int, RunReading]]:
    """As far as the workers live."""
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in missing:
        todo.put(number)
    answers: queue.SimpleQueue[tuple[int, RunReading] | None] = queue.SimpleQueue()
    processes = [_start() for _ in range(num_workers)]
    try:
        for process in processes:
            threading.Thread(target=_feed, args=(process, wanted, todo, answers), daemon=True).start()
        living = num_workers
        while living:
            answer = answers.get()
            if answer is None:
                living -= 1
            else:
                yield answer
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _start() -> subprocess.Popen[bytes]:
    """A process that finds the packages where this one does, and runs nothing of this one's main module."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(
        [sys.executable, *WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def _feed(
    process: subprocess.Popen[bytes],
    wanted: Sequence[Wanted],
    todo: "queue.SimpleQueue[int]",
    answers: "queue.SimpleQueue[tuple[int, RunReading] | None]",
) -> None:
    """Give a worker one run after the other until none is left, or the worker is gone."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        while True:
            number = todo.get_nowait()
            process.stdin.write(wanted[number].line())
            process.stdin.flush()
            length = int.from_bytes(process.stdout.read(LENGTH_BYTES))
            if length > MOST_BYTES:
                raise NotATree("no worker of ours")
            answers.put((number, reading_from_bytes(process.stdout.read(length))))
    except (queue.Empty, OSError, ValueError, NotATree):
        pass
    finally:
        answers.put(None)
