"""Tells a sweep's webhook what happens while a command watches the sweep."""

import time
from collections.abc import Sequence

from rich.console import Console

from ablations.home.notifications import tell_webhook
from ablations.home.started_sweep import StartedSweep
from ablations.status.live import say
from ablations.status.rows import RunRow

EVERY_S = 30.0
"""Seconds between two looks at runs that go on."""


class Notifier:
    """Looks at the rows of a sweep now and then, and says once on the console why the webhook cannot be told."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._looked_at, self._why = -EVERY_S, ""

    def look(self, sweep: StartedSweep, rows: Sequence[RunRow], *, now: bool) -> None:
        """Tell what is new in these rows, if it is time or `now`."""
        if sweep.plan.notify is None or not (now or time.monotonic() - self._looked_at > EVERY_S):
            return
        self._looked_at = time.monotonic()
        why = tell_webhook(sweep, {row.id: row.state for row in rows})
        if why and why != self._why:
            say(self._console, f"{sweep.name}: {why}")
        self._why = why
