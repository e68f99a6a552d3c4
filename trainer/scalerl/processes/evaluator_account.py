"""Time spent by the evaluator's device, on the clock of the run, which is not the evaluator's own.

The evaluator keeps measuring while the clock stands still, in a checkpoint. Its time for an evaluation is booked when
the answer is read, up to the clock time since the request; the rest of that time counts as waiting.
"""

from collections.abc import Mapping

from scalerl.cluster.device_seconds import Account, Activity


class EvaluatorAccount:
    """Account of one evaluator across restarts of its process."""

    def __init__(self, earlier: Mapping[Activity, float] | None = None) -> None:
        """`earlier` is the time spent before a resume."""
        seconds = dict(earlier or {})
        self._account = Account(until=sum(seconds.values()), seconds=seconds)
        self.doing: Activity = "wait_weights"

    def switch(self, activity: Activity, now: float) -> None:
        """Switch to another activity."""
        self._account.book(self.doing, max(now, self._account.until))
        self.doing = activity

    def measured(self, took: Mapping[Activity, float], now: float) -> None:
        """Book the time `took` for an evaluation whose answer is read now."""
        passed, whole = max(0.0, now - self._account.until), sum(took.values())
        share = min(1.0, passed / whole) if whole else 0.0
        spent: dict[Activity, float] = {name: share * seconds for name, seconds in took.items()}
        self._account.book("wait_weights", max(now, self._account.until), of_which=spent)
        self.doing = "wait_weights"

    def at(self, now: float) -> dict[Activity, float]:
        """Seconds up to `now`, by activity."""
        return self._account.at(max(now, self._account.until), self.doing)
