"""The time of the next checkpoint: not before the recipe's interval, and rare enough that saving costs little."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

MOST_TIME_SAVING = 0.05
"""Largest share of a run's time spent on writing checkpoints; a large model's take many seconds each."""


def time_between_saves(least_s: float, last_took_s: float) -> float:
    """Seconds from the end of a save to the next: `least_s`, or longer if saving would exceed its share.

    0 stays 0: such a recipe gets a checkpoint after every step.
    """
    return max(least_s, last_took_s * (1 / MOST_TIME_SAVING - 1)) if least_s > 0 else 0.0


class SaveInterval:
    """Times the saves of one process and decides when the next is due."""

    def __init__(self, least_s: float) -> None:
        self.least_s = least_s
        self.saved, self.took = time.monotonic(), 0.0

    @property
    def is_due(self) -> bool:
        """True if enough time has passed since the last save, or since the start."""
        return time.monotonic() - self.saved >= time_between_saves(self.least_s, self.took)

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Time the save in the block."""
        began = time.monotonic()
        yield
        self.saved = time.monotonic()
        self.took = self.saved - began
