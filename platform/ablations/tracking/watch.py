"""`platform sync --watch`: pushes new data of a sweep to MLflow repeatedly, from a machine that can reach the server.

Each push is a separate process: memory, connections and hangs of MLflow's client end with that process, and an
unreachable server is tried again. Between two pushes only the run logs are read.
"""

import json
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ablations.home.started_sweep import StartedSweep
from ablations.text import cause
from ablations.tracking.beside_a_sweep import sync_command
from ablations.tracking.ledger import read_ledger

PUSH_LIMIT_S = 600.0
"""Seconds until a push is killed; the next push starts after its last batch."""


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
        sweep = self.sweep.reread()
        return read_ledger(sweep).is_current(sweep, self.tracking_uri)

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
            [*sync_command(self.sweep, self.tracking_uri), "--json"],
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
        left = read_ledger(sweep).num_left(sweep)
        return {"outcome": "silent", "rows_pushed": 0, "rows_left": left, "reason": reason}
