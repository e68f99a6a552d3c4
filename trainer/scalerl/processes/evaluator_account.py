"""How the evaluator's device spends its time, as the coordinator sees it: the clock of the run is not the evaluator's.

It goes on measuring while the clock stands still, in a checkpoint. What it took for an evaluation is booked when its
answer is heard, at most the time on the clock since it was asked; the rest it waited.
"""

from collections.abc import Mapping

from scalerl.cluster.device_seconds import Account, Activity


class EvaluatorAccount:
    """The account of one evaluator, whatever process has its place."""

    def __init__(self, earlier: Mapping[Activity, float] | None = None) -> None:
        """`earlier` is what was spent before a resume."""
        seconds = dict(earlier or {})
        self._account = Account(until=sum(seconds.values()), seconds=seconds)
        self.doing: Activity = "wait_weights"

    def switch(self, activity: Activity, now: float) -> None:
        """From here on it does something else."""
        self._account.book(self.doing, max(now, self._account.until))
        self.doing = activity

    def measured(self, took: Mapping[Activity, float], now: float) -> None:
        """An evaluation has taken so long, and its answer is heard now."""
        passed, whole = max(0.0, now - self._account.until), sum(took.values())
        share = min(1.0, passed / whole) if whole else 0.0
        spent: dict[Activity, float] = {name: share * seconds for name, seconds in took.items()}
        self._account.book("wait_weights", max(now, self._account.until), of_which=spent)
        self.doing = "wait_weights"

    def at(self, now: float) -> dict[Activity, float]:
        """Seconds up to `now`, by activity."""
        return self._account.at(max(now, self._account.until), self.doing)
