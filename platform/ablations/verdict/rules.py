"""The rules that turn an interval into a verdict: when a variant differs, when it does not, when nobody can tell."""

from typing import Literal

from ablations.verdict.interval import Interval

Difference = Literal["reference", "ceiling up", "ceiling down", "no difference seen", "cannot tell"]
LevelDifference = Literal["reference", "level up", "level down", "no difference seen", "cannot tell"]
Efficiency = Literal["reference", "less compute", "more compute", "no difference seen", "cannot tell"]

DECIDED = ("level up", "level down", "ceiling up", "ceiling down", "less compute", "more compute")
"""The verdicts that say that a variant differs."""
WIDEST_MARGIN = 0.04
"""Over this half-width an interval around 0 says nothing: two resolved fits of one seed each give 0.035."""
WIDEST_LEVEL_MARGIN = 0.025
"""The same of levels: one seed each gives 0.021, with the run-to-run sd assumed."""
WIDEST_RATIO = 1.5
"""An interval of the compute ratio that holds 1 and spans more than this factor says nothing."""
PAPER_MARGIN = 0.02
"""What the paper takes for the error of A (ScaleRL §4)."""


def ceiling_rule(delta: Interval) -> Difference:
    """What an interval of the difference in A says; an unbounded or a very wide one around 0 says nothing."""
    if delta.lo is not None and delta.lo > 0:
        return "ceiling up"
    if delta.hi is not None and delta.hi < 0:
        return "ceiling down"
    if delta.lo is None or delta.hi is None or delta.hi - delta.lo > 2 * WIDEST_MARGIN:
        return "cannot tell"
    return "no difference seen"


def level_rule(delta: Interval | None) -> LevelDifference:
    """What an interval of the difference in level says; a wide one around 0 says nothing."""
    if delta is None or delta.lo is None or delta.hi is None:
        return "cannot tell"
    if delta.lo > 0:
        return "level up"
    if delta.hi < 0:
        return "level down"
    return "no difference seen" if delta.hi - delta.lo <= 2 * WIDEST_LEVEL_MARGIN else "cannot tell"


def paper_rule(delta: float | None) -> Difference:
    """The paper's rule: two A within 0.02 are equal (ScaleRL §4, A.5). `delta` is None where an A has no upper end."""
    if delta is None:
        return "cannot tell"
    if abs(delta) <= PAPER_MARGIN:
        return "no difference seen"
    return "ceiling up" if delta > 0 else "ceiling down"


def efficiency_rule(ratio: Interval | None) -> Efficiency:
    """What an interval of the compute ratio says; one around 1 that is wide or has no end says nothing."""
    if ratio is None:
        return "cannot tell"
    if ratio.lo is not None and ratio.lo > 1:
        return "more compute"
    if ratio.hi is not None and ratio.hi < 1:
        return "less compute"
    if ratio.lo is None or ratio.hi is None or ratio.hi > WIDEST_RATIO * ratio.lo:
        return "cannot tell"
    return "no difference seen"
