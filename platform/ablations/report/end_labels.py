"""The labels at the right edge of the curves: name and A of each variant, moved apart so that none covers another."""

from collections.abc import Sequence
from typing import Any

from ablations.fit.asymptote import AsymptoteEstimate

LEADER_PX = 20
"""Length of the line from the end of a curve to its label, across."""
_LEADER = {"type": "line", "xref": "paper", "xsizemode": "pixel", "xanchor": 1, "yref": "y", "x0": 2, "x1": LEADER_PX}
_LABEL = {"xref": "paper", "x": 1, "xshift": LEADER_PX + 4, "xanchor": "left", "yref": "y", "yanchor": "middle"}
_LABEL |= {"showarrow": False, "borderpad": 0}


def leader(height: float, place: float, colour: str) -> dict[str, Any]:
    """Plotly's line from a curve that ends at `height` to its label at `place`."""
    return _LEADER | {"y0": height, "y1": place, "line": {"color": colour, "width": 1}}


def end_label(text: str, place: float, *, colour: str, size: int, yshift: float = 0) -> dict[str, Any]:
    """Plotly's text at the right edge of a figure, `yshift` pixels above `place`."""
    return _LABEL | {"text": text, "y": place, "yshift": yshift, "font": {"color": colour, "size": size}}


def asymptote_text(estimate: AsymptoteEstimate | None) -> str:
    """A for a figure: `A 0.612 [0.590, 0.633]`, `A ≥ 0.59`, `no rise`; `no fit` without an estimate.

    >>> asymptote_text(AsymptoteEstimate(A=0.7, lo=0.59, hi=None, verdict="lower bound only"))
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
