"""Shows a sweep while it runs: a live table in a terminal, lines elsewhere."""

import time
from datetime import datetime

from rich.console import Console, Group
from rich.live import Live

from ablations.home.started_sweep import StartedSweep
from ablations.status.failures import group_failures
from ablations.status.progress import run_rows
from ablations.status.rows import RunRow
from ablations.status.table import MOST_ROWS, outlook, status_view, summary

QUIET_S = 30.0
"""Seconds after which an unchanged line is repeated when the output is not a terminal."""
LINES_BESIDE_ROWS = 10
"""Number of lines of a live table besides its rows: title, head, counts of hidden runs, and the prompt."""


class LiveStatus:
    """Shows a sweep while it runs: a live table in a terminal, elsewhere a line for each change."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=2, transient=True) if console.is_terminal else None
        self._said, self._said_at = "", 0.0

    def __enter__(self) -> "LiveStatus":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            self._live.stop()

    def update(self, sweep: StartedSweep) -> list[RunRow]:
        """Read, show and return the states of the sweep, whose plan may be longer than before."""
        plan, rows = sweep.plan, run_rows(sweep)
        if self._live:
            self._live.update(self._view(sweep, rows))
            return rows
        states = " ".join(row.state.state for row in rows)
        now = time.monotonic()
        if states != self._said or now - self._said_at > QUIET_S:
            self._said, self._said_at = states, now
            text = f"{plan.sweep}: {summary(plan, rows)}; {outlook(sweep, rows, now=clock())}"
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
        return rows

    def _view(self, sweep: StartedSweep, rows: list[RunRow]) -> Group:
        """The part of the table that fits on the terminal, which cannot scroll while live."""
        failures = group_failures(sweep.home, rows)
        most_rows = max(5, min(MOST_ROWS, self._console.height - LINES_BESIDE_ROWS - 3 * len(failures)))
        return status_view(
            sweep,
            rows,
            failures=failures,
            now=clock(),
            most_rows=most_rows,
            with_traces=False,
        )


def clock() -> datetime:
    """The user's local time."""
    return datetime.now().astimezone()


def say(console: Console, text: str) -> None:
    """Print one line without markup."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
