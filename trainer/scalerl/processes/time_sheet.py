"""How a process spent its time."""

import time
from collections.abc import Callable
from typing import Literal

Activity = Literal["busy", "idle", "off"]
"""At work, waiting for work, or not counted: before the start, during evaluations and checkpoints."""


class TimeSheet:
    """Seconds of each activity; every moment belongs to exactly one.

    >>> sheet.switch("busy")
    >>> sheet.seconds("busy")
    0.82
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._seconds: dict[Activity, float] = {"busy": 0.0, "idle": 0.0, "off": 0.0}
        self.activity: Activity = "off"

    def switch(self, activity: Activity) -> Activity:
        """Spend the time from here on with `activity`; returns the one before."""
        now = self._clock()
        self._seconds[self.activity] += now - self._since
        before, self.activity, self._since = self.activity, activity, now
        return before

    def seconds(self, *activities: Activity) -> float:
        """Spent so far with these activities."""
        self.switch(self.activity)
        return sum(self._seconds[activity] for activity in activities)
