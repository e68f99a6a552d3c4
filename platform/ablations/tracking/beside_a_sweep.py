"""`platform sync` beside a sweep, in processes of its own, so that MLflow never slows or stops a training."""

import subprocess
import sys
from collections.abc import Iterable

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.home.state import RunState, State
from ablations.tracking.ledger import read_ledger

SYNC_LIMIT_S = 120.0
"""Seconds that the sweep command waits for MLflow at its end; `platform sync` resumes there."""


def sync_command(sweep: StartedSweep, tracking_uri: str | None) -> list[str]:
    """The command that pushes a sweep, None for the home folder's own store."""
    command = [sys.executable, "-m", "ablations.cli", "sync", sweep.name, "--home", str(sweep.home.path)]
    return [*command, "--tracking-uri", tracking_uri] if tracking_uri else command


class Tracker:
    """Runs one synchroniser at a time, started if a run has ended since the one before."""

    def __init__(self, sweep: StartedSweep, tracking_uri: str | None) -> None:
        self._sweep, self._uri = sweep, tracking_uri
        self._process: subprocess.Popen[str] | None = None
        self._num_ended: int | None = None

    def look(self, states: Iterable[RunState]) -> None:
        """Start a synchroniser if more of the runs have ended than at its last start, and none is running."""
        if self._process and self._process.poll() is None:
            return
        num_ended = sum(one.state.is_finished or one.state == State.FAILED for one in states)
        if self._num_ended is not None and num_ended > self._num_ended:
            self._process = self._start()
        self._num_ended = num_ended

    def _start(self) -> subprocess.Popen[str]:
        command = sync_command(self._sweep, self._uri)
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL
        )

    def finish(self, console: Console) -> None:
        """Bring MLflow up to date and report the remaining rows."""
        sweep = self._sweep.reread()  # a search has made its plan longer
        if read_ledger(sweep).is_current(sweep, self._uri):
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
