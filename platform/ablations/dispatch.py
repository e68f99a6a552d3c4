"""Runs become jobs: submitit's local executor, with a limit on how many train at once.

submitit only starts the processes. What became of a run is read from its status file, never from a submitit result,
and each submission has a folder of its own, because a reused one returns old results.
"""

import os
import signal
import threading
import time
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import submitit

from ablations.home import Home
from ablations.job import train_run
from ablations.state import RunState, read_state

POLL_S = 0.5
STOP_LIMIT_S = 60.0
"""Seconds that interrupted runs get to write their checkpoints."""
NO_TIME_LIMIT_MIN = 60 * 24 * 365
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(kw_only=True)
class LocalPool:
    """Trains runs on this machine, `jobs` at a time: `for killed in LocalPool(...).train(["3f0c9a1b2d4e", ...])`."""

    home: Home
    submissions: Path
    """Folder under which each submission gets its own."""
    budget_gpu_hours: float
    threads: int
    """CPU threads of one run."""
    jobs: int
    """Most runs at once."""
    cancel_marker: Path
    """While this file exists no run is started and those that train are asked to stop."""
    _running: dict[str, submitit.Job[None]] = field(default_factory=dict)

    def train(self, run_ids: list[str]) -> Generator[str | None, None, None]:
        """Train every run that is not done; ends when none is left running.

        Yields twice a second: a run whose process ended without a word, or None. A run that another process holds is
        waited for. Whatever interrupts the loop, running runs are asked to checkpoint and stop, and waited for.
        """
        waiting = list(run_ids)
        try:
            while waiting or self._running:
                killed = self._reap(waiting)
                self._start(waiting)
                yield from killed or [None]
                time.sleep(POLL_S)
        finally:
            self._stop()

    def _state(self, run_id: str) -> RunState:
        return read_state(self.home.run(run_id), self.budget_gpu_hours)

    def _start(self, waiting: list[str]) -> None:
        if self.cancel_marker.exists():
            waiting.clear()
            self._ask_to_stop()
            return
        for run_id in list(waiting):
            if len(self._running) >= self.jobs:
                return
            state = self._state(run_id).state
            if state == "done":  # another sweep has trained it since
                waiting.remove(run_id)
            elif state != "running":  # else another sweep is training it; look again later
                waiting.remove(run_id)
                self._running[run_id] = self._submit(run_id)

    def _submit(self, run_id: str) -> submitit.Job[None]:
        folder = self.submissions / f"{time.strftime('%Y%m%d-%H%M%S')}-{run_id}-{uuid.uuid4().hex[:6]}"
        executor = submitit.LocalExecutor(folder)
        executor.update_parameters(timeout_min=NO_TIME_LIMIT_MIN, name=run_id)
        run = self.home.run(run_id).path
        with environment({variable: str(self.threads) for variable in THREAD_VARIABLES}), interrupts_ignored():
            return executor.submit(train_run, run, self.budget_gpu_hours, self.home.warm_starts)

    def _reap(self, waiting: list[str]) -> list[str]:
        """Forget jobs that ended; returns the runs among them that left no word."""
        killed = []
        for run_id, job in list(self._running.items()):
            if not job.done():
                continue
            del self._running[run_id]
            state = self._state(run_id).state
            if state == "running" or (state == "cancelled" and not self.cancel_marker.exists()):
                waiting.append(run_id)  # another sweep took the run first, or cancelled it while we still want it
            elif state in ("pending", "stale"):
                killed.append(run_id)
        return killed

    def _ask_to_stop(self) -> None:
        """SIGTERM to every run of ours that trains; one that is only starting is asked when called again."""
        for run_id in self._running:
            pid = self._state(run_id).pid
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)

    def _stop(self) -> None:
        deadline = time.monotonic() + STOP_LIMIT_S
        while any(not job.done() for job in self._running.values()) and time.monotonic() < deadline:
            self._ask_to_stop()
            time.sleep(POLL_S)


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Processes started inside ignore Ctrl-C, which a terminal sends to all of them: the sweep asks them to stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables for the processes started inside."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
