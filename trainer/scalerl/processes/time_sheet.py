"""Time spent by a process, and the coordinator's account of another process's time."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from scalerl.cluster.device_seconds import Account, Activity
from scalerl.processes.running_clock import running_s

Pastime = Activity | Literal["off"]
"""An activity, or time that is not counted: before the start, during evaluations and checkpoints."""


class TimeSheet:
    """Books the real time of one device; its account stands still while the device is off.

    >>> sheet.switch("decode")
    >>> sheet.seconds()
    {"decode": 0.82}
    """

    def __init__(self, clock: Callable[[], float] = running_s) -> None:
        self._clock, self._since, self._account = clock, clock(), Account()
        self.activity: Pastime = "off"

    def switch(self, activity: Pastime, *, was: Activity | None = None) -> Pastime:
        """Switch to `activity`; returns the previous one.

        `was` relabels the time of the previous activity, if its kind is known only at the end.
        """
        now = self._clock()
        if self.activity != "off":
            self._account.book(was or self.activity, self._account.until + now - self._since)
        before, self.activity, self._since = self.activity, activity, now
        return before

    def seconds(self) -> dict[Activity, float]:
        """Seconds spent so far, by activity."""
        self.switch(self.activity)
        return dict(self._account.seconds)

    def forget(self, activity: Activity, seconds: float) -> None:
        """Remove seconds booked to an activity that turned out not to count."""
        self.switch(self.activity)
        self._account = _account_of(_less(self._account.seconds, activity, seconds))

    def elapsed(self) -> float:
        """Seconds so far, without time that is not counted."""
        return sum(self.seconds().values())


@dataclass(kw_only=True)
class ReportedAccount:
    """Account of a process that reports now and then; in between, its last known activity is assumed to continue.

    >>> account = ReportedAccount()
    >>> account.report({"decode": 2.0}, doing="wait_prompts")
    >>> account.at(2.5)
    {"decode": 2.0, "wait_prompts": 0.5}
    """

    earlier: Mapping[Activity, float] = field(default_factory=dict)
    """Time missing from the process's own account: before a resume, and of dead predecessors."""
    doing: Activity = "wait_prompts"

    def __post_init__(self) -> None:
        self._account = _account_of(self.earlier)

    def report(self, seconds: Mapping[Activity, float], doing: Activity) -> None:
        """Book the time reported by the process, which continues with `doing`."""
        sums: Counter[Any] = Counter(self.earlier)
        sums.update(seconds)
        self._account, self.doing = _account_of(sums), doing

    def switch(self, activity: Activity, now: float) -> None:
        """Note the process's switch to another activity."""
        self._account.book(self.doing, max(now, self._account.until))
        self.doing = activity

    def measured(self, took: Mapping[Activity, float], now: float) -> None:
        """Book the time `took` by the evaluator for an evaluation whose answer is read now; the rest was waiting.

        The evaluator keeps measuring while the clock stands still, so its time is booked up to that on the clock.
        """
        passed, whole = max(0.0, now - self._account.until), sum(took.values())
        share = min(1.0, passed / whole) if whole else 0.0
        spent: dict[Activity, float] = {name: share * seconds for name, seconds in took.items()}
        self._account.book("wait_weights", max(now, self._account.until), of_which=spent)
        self.doing = "wait_weights"

    def replaced(self, now: float) -> None:
        """Note that another process has replaced this one and begins its own account."""
        self.switch("wait_prompts", now)
        self.earlier = dict(self._account.seconds)

    def fit_in(self, now: float) -> None:
        """Remove what the process did beyond the clock, which stood still while it waited for another."""
        if (beyond := self._account.until - now) > 0.0:
            self.earlier = _less({self.doing: 0.0, **self.earlier}, self.doing, beyond, least=-now)
            self._account = _account_of(_less(self._account.seconds, self.doing, beyond))

    def at(self, now: float) -> dict[Activity, float]:
        """Seconds up to `now`, by activity."""
        return self._account.at(max(now, self._account.until), self.doing)


def _less(
    seconds: Mapping[Activity, float], activity: Activity, less: float, *, least: float = 0.0
) -> dict[Activity, float]:
    return {**seconds, activity: max(least, seconds.get(activity, 0.0) - less)}


def _account_of(seconds: Mapping[Activity, float]) -> Account:
    return Account(until=sum(seconds.values()), seconds=dict(seconds))
