"""Runs `platform sync` in separate processes: beside a sweep, or with `--watch` on a machine that can reach the server.
So MLflow never slows down or stops training, and its client's memory, connections and hangs end with each push.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.home.state import RunState, State
from ablations.text import cause
from ablations.tracking.sync_note import is_current, read_note

PUSH_LIMIT_S = 600.0
"""Seconds after which a watch kills a push; the next push resumes after its last batch."""
PUSH_EVERY_S = 60.0
"""Seconds between the starts of two pushes beside a sweep: each takes five processor seconds, mostly to load MLflow."""
SYNC_LIMIT_S = 120.0
"""Seconds that the sweep command waits for MLflow at its end; `platform sync` resumes there."""


def sync_command(sweep: StartedSweep) -> list[str]:
    """The command that pushes a sweep, to the server of `sync_environment`."""
    return [sys.executable, "-P", "-m", "ablations.cli", "sync", sweep.name, "--home", str(sweep.home.path)]


def sync_environment(tracking_uri: str | None) -> dict[str, str]:
    """The environment of a push, with the server's URL, None for the home folder's own store.

    Every user of a machine sees the arguments of a process, and a URL may hold a password.
    """
    return os.environ | ({"MLFLOW_TRACKING_URI": tracking_uri} if tracking_uri else {})


class Tracker:
    """Runs one synchroniser at a time, at most one a minute, started if a run has ended since the previous one."""

    def __init__(
        self, sweep: StartedSweep, tracking_uri: str | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sweep, self._uri, self._clock = sweep, tracking_uri, clock
        self._process: subprocess.Popen[str] | None = None
        self._num_ended: int | None = None
        self._began = clock()
        """Start of the last push; of the sweep before the first."""
        self._is_over = False
        self._last: subprocess.Popen[str] | None = None
        """A push that began after all runs had ended."""

    def look(self, states: Iterable[RunState]) -> None:
        """Start a synchroniser if more of the runs have ended than at its last start, none is running, and a minute has
        passed since that start; before the first, since the start of the sweep."""
        if self._process and self._process.poll() is None:
            return
        num_ended = sum(one.state.is_finished or one.state == State.FAILED for one in states)
        if self._num_ended is None or num_ended < self._num_ended:
            self._num_ended = num_ended
        if num_ended > self._num_ended and self._clock() >= self._began + PUSH_EVERY_S:
            if self._process:
                self._process.communicate()  # closes its pipe
            self._process, self._num_ended, self._began = self._start(), num_ended, self._clock()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            sync_command(self._sweep),
            env=sync_environment(self._uri),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            stdin=subprocess.DEVNULL,
        )

    def begin_last(self) -> None:
        """Start the last push without waiting for it; while another runs, that is left to `finish`."""
        self._is_over = True
        is_pushing = self._process is not None and self._process.poll() is None
        if not is_pushing and not is_current(self._sweep.reread(), self._uri):
            self._last = self._start()

    def finish(self, console: Console) -> None:
        """After `begin_last`, bring MLflow up to date and report the remaining rows; else do nothing."""
        sweep = self._sweep.reread()  # a search has made its plan longer
        if not self._is_over or (self._last is None and is_current(sweep, self._uri)):
            return
        if self._last is None or self._last.poll() is None:
            console.print(f"pushing the last results to MLflow, for at most {2 * SYNC_LIMIT_S:g} s", soft_wrap=True)
        waited_for = self._last or self._process
        try:
            if self._last is None:
                if self._process:
                    self._process.communicate(timeout=SYNC_LIMIT_S)
                waited_for = self._last = self._start()
            output, _ = self._last.communicate(timeout=SYNC_LIMIT_S)
            said = output.strip().splitlines()[-1] if output.strip() else "MLflow: the push printed nothing"
            console.print(said, markup=False, highlight=False, soft_wrap=True)
        except subprocess.TimeoutExpired:
            assert waited_for is not None
            waited_for.kill()
            waited_for.wait()
            command = f"platform sync {sweep.name}{sweep.home.end_of_command}"
            console.print(f"MLflow did not answer in time; `{command}` pushes the rest later", soft_wrap=True)


@dataclass(kw_only=True)
class SyncWatch:
    """Pushes one sweep until it has ended and nothing is left; reports changes in one line each.

    >>> SyncWatch(sweep=sweep, tracking_uri=None, every_s=30.0, is_going=is_going, say=print).run()
    """

    sweep: StartedSweep
    tracking_uri: str | None
    """None for the home folder's own store."""
    every_s: float
    is_going: Callable[[StartedSweep], bool]
    """True while a run of the sweep is training or waiting."""
    say: Callable[[str], None]
    _problem: str = field(default="", init=False)
    """Cause of the last push's failure, so that each cause is reported once."""
    _is_silent: bool = field(default=False, init=False)
    """True if the server could not be used at the last push."""

    def run(self) -> bool:
        """Push until no run of the sweep is training or waiting; True if MLflow then has everything."""
        while True:
            sweep = self.sweep.reread()
            # Checked before the push, so that rows written until the end are pushed after it.
            is_over = not self.is_going(sweep)
            is_stuck = not self.has_everything() and not self._push() and not self._is_silent
            if is_over and self.has_everything():
                self.say(f"{self.sweep.name}: the sweep has ended, and MLflow has everything")
                return True
            if is_over and is_stuck:  # the rest cannot be pushed, such as the rows after a damaged line
                return False
            time.sleep(self.every_s)

    def has_everything(self) -> bool:
        """True if MLflow has everything in the run folders now."""
        return is_current(self.sweep.reread(), self.tracking_uri)

    def _push(self) -> bool:
        """Push once; True if a later push may bring more, because rows were pushed or another process is pushing."""
        report = self._report()
        outcome, reason, left = report["outcome"], report["reason"], report["rows_left"]
        if outcome == "busy":
            return True
        if report["rows_pushed"]:
            again = "MLflow answers again; " if self._is_silent and outcome == "pushed" else ""
            self.say(f"{self.sweep.name}: {again}pushed {report['rows_pushed']:,} rows, {left:,} left")
        if reason and cause(reason) != self._problem:
            tries = "" if outcome == "pushed" else f"; trying again every {self.every_s:g} s"
            self.say(f"{self.sweep.name}: {left:,} rows are left, because {reason}{tries}")
        self._problem, self._is_silent = cause(reason), outcome == "silent"
        return report["rows_pushed"] > 0

    def _report(self) -> dict[str, Any]:
        """The output of `platform sync --json` for one push."""
        # In a session of its own, since Ctrl-C is for the watch, which ends the push.
        with subprocess.Popen(
            [*sync_command(self.sweep), "--json"],
            env=sync_environment(self.tracking_uri),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as push:
            try:
                printed, complained = push.communicate(timeout=PUSH_LIMIT_S)
            except subprocess.TimeoutExpired:
                return self._no_report(f"a push did not end within {PUSH_LIMIT_S:g} s")
            finally:
                push.kill()  # the next push sends the rest
        with suppress(ValueError):
            if "error" not in (report := json.loads(printed)):
                return report
        return self._no_report(f"a push failed: {' '.join(complained.strip().splitlines()[-1:])}")

    def _no_report(self, reason: str) -> dict[str, Any]:
        sweep = self.sweep.reread()
        left = read_note(sweep.home, sweep.name).num_left(sweep)
        return {"outcome": "silent", "rows_pushed": 0, "rows_left": left, "reason": reason}
