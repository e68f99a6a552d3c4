"""Readings of many runs: saved readings are reused, and the others are read and fitted by one process per core.

A worker's result is bit-identical to this process's own, since each fit uses one BLAS thread everywhere. If a worker
dies, this process reads the runs that are left, and reports errors.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from typing import Any

from ablations.files.trees import tree_bytes, tree_from_bytes
from ablations.fit.options import FitSettings
from ablations.readings.run_reading import (
    RunReading,
    kept_reading,
    read_kept,
)
from ablations.terminal.progress_bar import Done
from scalerl.run.run_folder import RunFolder

FEWEST = 12
"""Minimum number of runs to fit for starting workers, which takes as long as a few fits."""
MOST_WORKERS = 16
"""Limit on workers: a login node has more cores, but also other users."""
LOOK_AT_PARENT_EVERY_S = 1.0
KEEP_MEMORY = {
    "MALLOC_TOP_PAD_": str(2**26),
    "MALLOC_TRIM_THRESHOLD_": str(2**28),
    "MALLOC_MMAP_THRESHOLD_": str(2**28),
}
"""A fit allocates and frees arrays of a few megabytes all the time; glibc would return them to the system each time."""


@dataclass(frozen=True, kw_only=True)
class WantedRun:
    """A run and how to read it: `WantedRun(folder=home.run("3f0c9a1b2d4e"), name="scalerl-s0", settings=settings)`."""

    folder: RunFolder
    name: str
    settings: FitSettings

    def kept(self) -> RunReading | None:
        """The saved reading, if any, else None."""
        return read_kept(self.folder, self.name, self.settings)

    def read(self) -> RunReading:
        """Read the run; the reading is then saved."""
        return kept_reading(self.folder, self.name, self.settings)


def readings_of_runs(
    wanted: Sequence[WantedRun], *, done: Done | None = None, workers: int | None = None
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


def _fitted(wanted: Sequence[WantedRun], missing: Sequence[int], num_workers: int) -> Iterator[tuple[int, RunReading]]:
    """Each missing reading with its index, in order of completion; this process reads what no worker has."""
    left = dict.fromkeys(missing)
    if num_workers > 1:
        pool = _pool(num_workers)
        try:
            numbers: dict[Any, int] = {pool.submit(_read, wanted[number]): number for number in missing}
            for future in as_completed(numbers):
                if future.exception() is None:
                    del left[numbers[future]]
                    yield numbers[future], tree_from_bytes(future.result(), RunReading)
        finally:
            pool.shutdown(kill_workers=True)
    for number in left:
        yield number, wanted[number].read()


def _pool(num_workers: int) -> Any:
    """Workers forked from this process, which have all its imports; if it has other threads, one of which may hold a
    lock, or is not on Linux, workers that import for themselves."""
    from joblib.externals.loky import ProcessPoolExecutor  # few commands need workers

    is_alone = sys.platform == "linux" and threading.active_count() == 1
    return ProcessPoolExecutor(
        num_workers,
        context=multiprocessing.get_context("fork") if is_alone else None,
        initializer=_begin,
        initargs=(os.getpid(),),
        env=KEEP_MEMORY | os.environ,
    )


def _begin(parent: int) -> None:
    """In a worker: leave Ctrl-C to the parent process, print nothing, and end with the parent, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_AT_PARENT_EVERY_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _read(wanted: WantedRun) -> bytes:
    return tree_bytes(wanted.read())
