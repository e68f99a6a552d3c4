"""Tells the webhook of a sweep about the events of its runs while the command waits."""

import time
from collections.abc import Sequence

from rich.console import Console

from ablations.home.notifications import tell_webhook
from ablations.home.started_sweep import StartedSweep
from ablations.status.live_table import say
from ablations.status.rows import RunRow

TELL_EVERY_S = 30.0
"""Seconds between two checks for events of running runs."""


class Notifier:
    """Checks the rows of a sweep from time to time, and prints the reason once if the webhook fails."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._looked_at, self._why = -TELL_EVERY_S, ""

    def look(self, sweep: StartedSweep, rows: Sequence[RunRow], *, now: bool) -> None:
        """Send the new events in these rows, if enough time has passed or `now` is set."""
        if sweep.plan.notify is None or not (now or time.monotonic() - self._looked_at > TELL_EVERY_S):
            return
        self._looked_at = time.monotonic()
        why = tell_webhook(sweep, {row.id: row.state for row in rows})
        if why and why != self._why:
            say(self._console, f"{sweep.name}: {why}")
        self._why = why
