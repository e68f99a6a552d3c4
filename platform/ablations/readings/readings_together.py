"""Readings of many runs: saved readings are reused, and the others are read and fitted by one process per core.

A worker's result is bit-identical to this process's own, since each fit uses one BLAS thread everywhere. If a worker
dies, this process reads its run again and reports errors.
"""

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence

from ablations.files.trees import NotATree
from ablations.readings.run_reading import RunReading, reading_from_bytes
from ablations.readings.wanted import Wanted
from ablations.terminal.progress_bar import Done

FEWEST = 12
"""Minimum number of runs to fit for starting workers, which takes as long as a few fits."""
MOST_WORKERS = 16
"""Limit on workers: a login node has more cores, but also other users."""
LENGTH_BYTES = 8
MOST_BYTES = 1 << 30
"""Size limit of one reading; a reading of 200 evaluations has 130 kB."""
WORKER = ["-m", "ablations.readings.reading_worker"]


def readings_of_runs(
    wanted: Sequence[Wanted], *, done: Done | None = None, workers: int | None = None
) -> list[RunReading]:
    """One reading for each of `wanted`, in order; `done` is called only if some must be fitted.

    `workers` is the number of processes, by default the number of cores that this process may use.
    """
    kept = [one.kept() for one in wanted]
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
    """Each missing reading with its index, in order of completion."""
    left = dict.fromkeys(missing)
    if num_workers > 1:
        for number, reading in _by_workers(wanted, missing, num_workers):
            del left[number]
            yield number, reading
    for number in left:
        yield number, wanted[number].read()


def _by_workers(wanted: Sequence[Wanted], missing: Sequence[int], num_workers: int) -> Iterator[tuple[int, RunReading]]:
    """The readings of the workers, until all are done or all workers have died."""
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
    """Start a worker that finds the same packages as this process and runs nothing of this one's main module."""
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
    """Give a worker one run after another until none is left or the worker has died."""
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
