"""Runs become jobs: submitit's local executor, with a limit on how many train at once.

submitit only starts the processes. What became of a run is read from its status file, never from a submitit result,
and each submission has a folder of its own, because a reused one returns old results.
"""

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import submitit

from ablations.home import Home
from ablations.job import train_run
from ablations.state import RunState, read_state

POLL_S = 0.5
NO_TIME_LIMIT_MIN = 60 * 24 * 365
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(kw_only=True)
class LocalPool:
    """Trains runs on this machine, `jobs` at a time: `LocalPool(...).train(["3f0c9a1b2d4e", ...], on_change)`."""

    home: Home
    submissions: Path
    """Folder under which each submission gets its own."""
    budget_gpu_hours: float
    threads: int
    """CPU threads of one run."""
    jobs: int
    """Most runs at once."""
    code_version: str
    cancel_marker: Path
    """While this file exists no further run is started."""
    _running: dict[str, submitit.Job[None]] = field(default_factory=dict)

    def train(self, run_ids: list[str], on_change: Callable[[], None]) -> None:
        """Train every run that is not done; returns when none is left running. `on_change` is called twice a second.

        A run that another process holds is waited for. An interrupt (Ctrl-C) asks running runs to checkpoint and
        stop, waits for them, and is raised again.
        """
        waiting = [run_id for run_id in run_ids if self._state(run_id).state != "done"]
        try:
            while waiting or self._running:
                self._reap(waiting)
                self._start(waiting)
                on_change()
                time.sleep(POLL_S)
        except KeyboardInterrupt:
            self._stop()
            raise

    def _state(self, run_id: str) -> RunState:
        return read_state(self.home.run(run_id), self.budget_gpu_hours)

    def _start(self, waiting: list[str]) -> None:
        if self.cancel_marker.exists():
            waiting.clear()
            return
        for run_id in list(waiting):
            if len(self._running) >= self.jobs:
                return
            if self._state(run_id).state == "running":  # held by another sweep; look again later
                continue
            waiting.remove(run_id)
            self._running[run_id] = self._submit(run_id)

    def _submit(self, run_id: str) -> submitit.Job[None]:
        folder = self.submissions / f"{time.strftime('%Y%m%d-%H%M%S')}-{run_id}-{uuid.uuid4().hex[:6]}"
        executor = submitit.LocalExecutor(folder)
        executor.update_parameters(timeout_min=NO_TIME_LIMIT_MIN, name=run_id)
        run = self.home.run(run_id).path
        with environment({variable: str(self.threads) for variable in THREAD_VARIABLES}):
            return executor.submit(train_run, run, self.budget_gpu_hours, self.home.warm_starts, self.code_version)

    def _reap(self, waiting: list[str]) -> None:
        for run_id, job in list(self._running.items()):
            if job.done():
                del self._running[run_id]
                state = self._state(run_id)
                if state.state == "running":  # another process had taken the run first
                    waiting.append(run_id)
                elif state.state in ("pending", "stale"):
                    print(f"run {run_id} ended without a status; see {job.paths.stderr}")

    def _stop(self) -> None:
        for run_id in self._running:
            pid = self._state(run_id).pid
            if pid is not None:
                os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 30
        while any(not job.done() for job in self._running.values()) and time.monotonic() < deadline:
            time.sleep(POLL_S)


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
