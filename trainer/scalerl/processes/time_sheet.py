"""How a process spends its time, and how the trainer's process keeps the account of a generator process."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from scalerl.cluster.device_seconds import Account, Activity

Pastime = Activity | Literal["off"]
"""An activity, or not counted: before the start, during evaluations and checkpoints."""


class TimeSheet:
    """Books the real time of one device; its account stands still while the device is off.

    >>> sheet.switch("decode")
    >>> sheet.seconds()
    {"decode": 0.82}
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._since, self._account = clock, clock(), Account()
        self.activity: Pastime = "off"

    def switch(self, activity: Pastime, *, was: Activity | None = None) -> Pastime:
        """Spend the time from here on with `activity`; returns the one before.

        `was` is what the one before has turned out to be, where that is seen only at its end.
        """
        now = self._clock()
        if self.activity != "off":
            self._account.book(was or self.activity, self._account.until + now - self._since)
        before, self.activity, self._since = self.activity, activity, now
        return before

    def seconds(self) -> dict[Activity, float]:
        """Spent so far, by activity."""
        self.switch(self.activity)
        return dict(self._account.seconds)

    def elapsed(self) -> float:
        """Seconds so far in which it was not off."""
        return sum(self.seconds().values())


@dataclass(kw_only=True)
class ReportedAccount:
    """The account of a process that reports its own now and then; in between it does what it was last known to do.

    >>> account = ReportedAccount()
    >>> account.report({"decode": 2.0}, doing="wait_prompts")
    >>> account.at(2.5)
    {"decode": 2.0, "wait_prompts": 0.5}
    """

    earlier: Mapping[Activity, float] = field(default_factory=dict)
    """What the process has not in its own account: before a resume, and of those that had its place before it died."""
    doing: Activity = "wait_prompts"

    def __post_init__(self) -> None:
        self._account = _account_of(self.earlier)

    def report(self, seconds: Mapping[Activity, float], doing: Activity) -> None:
        """The process has spent its time so, and goes on with `doing`."""
        sums: Counter[Any] = Counter(self.earlier)
        sums.update(seconds)
        self._account, self.doing = _account_of(sums), doing

    def switch(self, activity: Activity, now: float) -> None:
        """From here on the process is known to do something else."""
        self._account.book(self.doing, max(now, self._account.until))
        self.doing = activity

    def replaced(self, now: float) -> None:
        """Another process has taken the place of this one; it begins its own account."""
        self.switch("wait_prompts", now)
        self.earlier = dict(self._account.seconds)

    def at(self, now: float) -> dict[Activity, float]:
        """Seconds up to `now`, by activity."""
        return self._account.at(max(now, self._account.until), self.doing)


def _account_of(seconds: Mapping[Activity, float]) -> Account:
    return Account(until=sum(seconds.values()), seconds=dict(seconds))
