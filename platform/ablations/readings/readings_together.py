"""Readings of many runs: saved readings are reused, and the others are read and fitted by one process per core.

A worker's result is bit-identical to this process's own, since each fit uses one BLAS thread everywhere. If a worker
dies, this process reads its run again and reports errors.

A worker is a process of this file, which takes requests from its standard input and writes each reading to its standard
output. The worker ends with its input, and so with its parent process.
"""

import hashlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ablations.files.trees import tree_bytes
from ablations.fit.curve import Curve
from ablations.fit.options import FitSettings
from ablations.readings.kept import kept_tree, read_kept_tree
from ablations.readings.run_reading import (
    CLASSES,
    NAMED,
    RunReading,
    code_of_readings,
    kept_reading,
    read_kept,
    reading_bytes,
    reading_from_bytes,
    try_fit,
)
from ablations.terminal.progress_bar import Done
from scalerl.run.run_folder import RunFolder

FEWEST = 12
"""Minimum number of runs to fit for starting workers, which takes as long as a few fits."""
MOST_WORKERS = 16
"""Limit on workers: a login node has more cores, but also other users."""
WORKER = ["-m", "ablations.readings.readings_together"]


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


@dataclass(frozen=True, kw_only=True)
class WantedCurve:
    """A curve to fit: `WantedCurve(curve=curve, settings=settings, kept_in=home.curves)`."""

    curve: Curve
    settings: FitSettings
    kept_in: Path | None
    """Folder of saved fits, each in a file named by everything that determines it; None saves none."""

    def kept(self) -> RunReading | None:
        """The saved reading, if any, else None."""
        return None if self.kept_in is None else read_kept_tree(self._path(self.kept_in), RunReading, CLASSES, NAMED)

    def read(self) -> RunReading:
        """The curve with its fit, which is then saved if the folder is writable."""
        if self.kept_in is None:
            return self._fitted()
        return kept_tree(self._path(self.kept_in), self._fitted, RunReading, classes=CLASSES, named=NAMED)[0]

    def _fitted(self) -> RunReading:
        fit, reason = try_fit(self.curve, self.settings)
        cost = float(self.curve.compute[-1])
        # Finding outliers takes half as long as the fit, so what was found is kept with it.
        oddities = tuple(fit.oddities) if fit else ()
        return RunReading(curve=self.curve, fit=fit, reason=reason, cost_gpu_hours=cost, hours=None, oddities=oddities)

    def _path(self, folder: Path) -> Path:
        digest = hashlib.sha256(json.dumps([code_of_readings(), asdict(self.settings)]).encode())
        digest.update(tree_bytes(self.curve))
        return folder / f"fit-{digest.hexdigest()[:16]}.npz"


Wanted = WantedRun | WantedCurve


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
            pickle.dump(wanted[number], process.stdin)
            process.stdin.flush()
            answers.put((number, reading_from_bytes(pickle.load(process.stdout))))
    except Exception:  # none is left, or the worker is dead or answers nonsense; this process does its work
        pass
    finally:
        answers.put(None)


def main() -> None:
    """Answer requests until the input ends; Ctrl-C is left to the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keep what libraries print out of the answers
    with suppress(EOFError):
        while True:
            wanted: Wanted = pickle.load(sys.stdin.buffer)
            pickle.dump(reading_bytes(wanted.read()), answers)
            answers.flush()


if __name__ == "__main__":
    main()
