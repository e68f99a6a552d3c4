"""Runs lost with their machine or their place there: each goes on from its checkpoint, until it is lost too often."""

from ablations.home.state import RunState

MOST_LOSSES = 3
"""Losses of one run in a row, without a step between them, after which it is not started again."""


class Losses:
    """The losses of each run: its progress at the last one, and how many in a row saw this progress."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[tuple[int, int], int]] = {}

    def add(self, run_id: str, own: RunState) -> str:
        """Count a loss of a run in this state; returns why the run is given up, if it is."""
        progress = (own.step, own.warm_start_step)
        before, times = self._last.get(run_id, (progress, 0))
        times = times + 1 if before == progress else 1
        self._last[run_id] = progress, times
        return f"lost {times} times in a row without a step, so it is given up" if times >= MOST_LOSSES else ""
