"""The labels at the right edge of the curves: name and A of each variant, moved apart so that none covers another."""

from collections.abc import Sequence

from ablations.fit.asymptote import AsymptoteEstimate


def asymptote_text(estimate: AsymptoteEstimate | None) -> str:
    """A for a figure: `A 0.612 [0.590, 0.633]`, `A ≥ 0.59`, `no rise`; `no fit` without an estimate.

    >>> asymptote_text(AsymptoteEstimate(A=0.7, lo=0.59, hi=None, rises=True))
    'A ≥ 0.59'
    """
    return str(estimate).replace(">=", "≥") if estimate else "no fit"


def moved_apart(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Places between `low` and `high`, `gap` or more apart, near the wanted places and in their order.

    Neighbours that are too close form a group around the mean of their wanted places. If there is no room for all at
    `gap`, all places are evenly spaced.

    >>> moved_apart([0.5, 0.5, 1.0], gap=0.25, low=0.0, high=1.0)
    [0.375, 0.625, 1.0]
    """
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(len(wanted) - 1, 1))
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    groups: list[list[int]] = []
    starts: list[float] = []
    for place in order:
        groups.append([place])
        starts.append(_start(groups[-1], wanted, gap, low, high))
        while len(groups) > 1 and starts[-2] + gap * len(groups[-2]) > starts[-1]:
            groups[-2:] = [groups[-2] + groups[-1]]
            starts[-2:] = [_start(groups[-1], wanted, gap, low, high)]
    found = [0.0] * len(wanted)
    for group, start in zip(groups, starts, strict=True):
        for step, place in enumerate(group):
            found[place] = start + step * gap
    return found


def _start(group: Sequence[int], wanted: Sequence[float], gap: float, low: float, high: float) -> float:
    """The lowest place of a group whose middle is the mean of its wanted places, as far as the ends allow."""
    length = gap * (len(group) - 1)
    middle = sum(wanted[place] for place in group) / len(group)
    return min(max(middle - length / 2, low), high - length)
