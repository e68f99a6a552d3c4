"""`platform sync` beside a sweep, in processes of its own, so that MLflow never slows or stops a training."""

import subprocess
import sys

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.status.progress import run_rows
from ablations.tracking.ledger import read_ledger

SYNC_LIMIT_S = 120.0
"""Seconds that the sweep command waits for MLflow at its end; `platform sync` resumes there."""


class Tracker:
    """Runs one synchroniser at a time, started if a run has ended since the last one."""

    def __init__(self, sweep: StartedSweep, tracking_uri: str | None) -> None:
        self._sweep, self._uri = sweep, tracking_uri
        self._process: subprocess.Popen[str] | None = None
        self._ended = self._count_ended()

    def _count_ended(self) -> int:
        states = [row.state.state for row in run_rows(self._sweep)]
        return sum(state.is_finished or state == State.FAILED for state in states)

    def follow(self, sweep: StartedSweep) -> None:
        """Replace the sweep by its newer version with a longer plan."""
        self._sweep = sweep

    def tick(self) -> None:
        """Start a synchroniser if there is new data and none is running."""
        if self._process and self._process.poll() is None:
            return
        ended = self._count_ended()
        if ended > self._ended:
            self._ended = ended
            self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        name, home = self._sweep.name, self._sweep.home.path
        command = [sys.executable, "-m", "ablations.cli", "sync", name, "--home", str(home)]
        command += ["--tracking-uri", self._uri] if self._uri else []
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL
        )

    def finish(self, console: Console) -> None:
        """Bring MLflow up to date and report the remaining rows."""
        if read_ledger(self._sweep).is_current(self._sweep, self._uri):
            return
        console.print(f"pushing the last results to MLflow, for at most {2 * SYNC_LIMIT_S:g} s", soft_wrap=True)
        try:
            if self._process:
                self._process.communicate(timeout=SYNC_LIMIT_S)
            self._process = self._start()
            output, _ = self._process.communicate(timeout=SYNC_LIMIT_S)
            said = output.strip().splitlines()[-1] if output.strip() else "MLflow: the push printed nothing"
            console.print(said, markup=False, highlight=False, soft_wrap=True)
        except subprocess.TimeoutExpired:
            assert self._process is not None
            self._process.kill()
            self._process.wait()
            console.print(f"MLflow did not answer in time; `platform sync {self._sweep.name}` pushes the rest later")
