"""A curve as a word, with one character for each of `CHARACTERS` equal bins of compute.

>>> sparkline([0.2, 0.4, None, 0.6], low=0.2, high=0.6)
'▁▅ █'
"""

from collections.abc import Iterable, Sequence
from statistics import fmean

BARS = "▁▂▃▄▅▆▇█"
CHARACTERS = 12


def sparkline(values: Sequence[float | None], *, low: float, high: float) -> str:
    """A bar for each value, from the lowest at `low` to the highest at `high`; a blank for None."""
    return "".join(" " if value is None else _bar(value, low, high) for value in values).rstrip()


def _bar(value: float, low: float, high: float) -> str:
    share = (value - low) / (high - low) if high > low else 0.5
    return BARS[min(int(share * len(BARS)), len(BARS) - 1)]


def means_along(points: Iterable[tuple[float, float]], end: float) -> list[float | None]:
    """Mean value in each of `CHARACTERS` equal bins of compute from 0 to `end`; points are (compute, value)."""
    held: list[list[float]] = [[] for _ in range(CHARACTERS)]
    for place, value in points:
        held[min(int(place / end * CHARACTERS), CHARACTERS - 1)].append(value)
    return [fmean(values) if values else None for values in held]
