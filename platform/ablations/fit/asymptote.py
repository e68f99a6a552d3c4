"""The asymptote A with its interval, in all forms in which it is displayed."""

import math
from dataclasses import dataclass
from typing import Literal

Verdict = Literal[
    "resolved", "level only", "roughly known", "lower bound only", "collapsed", "fell", "no rise", "too noisy to tell"
]
WITHOUT_RISE: tuple[Verdict, ...] = ("fell", "no rise", "too noisy to tell")
"""Verdicts on a curve that falls, or that a flat line explains equally well."""

RESOLVED_WIDTH = 0.04
"""Twice the margin of 0.02 that the paper uses for A (ScaleRL §4)."""

DOUBTED = 0.05
"""Eq. 1 is doubted if its lack-of-fit test has a p-value below this."""
EQ1_DOUBTED = "eq. 1 doubted"

VERDICT_MEANINGS: dict[Verdict, str] = {
    "resolved": "the 95 % interval of A is at most 0.04 wide, twice the margin that the ScaleRL paper uses for A",
    "level only": "A is the level of evaluations that are flat from the third on, not the ceiling of a law: the whole "
    "rise lies before; evaluate more often early",
    "roughly known": "A is bounded on both sides, in an interval wider than 0.04; more compute or evaluations would "
    "narrow it",
    "lower bound only": "any ceiling above the bound fits the evaluations; A means nothing without more compute",
    "collapsed": "the pass rate collapsed after a peak; only the evaluations before the fall were fitted",
    "fell": "the last evaluations lie below the highest before them, so the curve has no ceiling",
    "no rise": "a flat line fits as well as a rising curve, so the curve has no ceiling",
    "too noisy to tell": "the evaluations seem to rise by over 0.05, but wander so much that a flat line fits as well",
}


@dataclass(frozen=True, kw_only=True)
class AsymptoteEstimate:
    """A with its 95 % interval: `AsymptoteEstimate(A=0.612, lo=0.590, hi=0.633, verdict="roughly known")`.

    >>> bounded, open_ended = (asymptote_of(0.612, lo=0.59, hi=hi, verdict="roughly known") for hi in (0.633, None))
    >>> str(bounded), bounded.cell()
    ('A 0.612 [0.590, 0.633]', '0.612 [0.590, 0.633]')
    >>> str(open_ended), open_ended.cell()
    ('A >= 0.59', '>= 0.59')
    """

    A: float | None
    """None if A has no upper end or the curve does not rise, because A then has no meaning."""
    lo: float
    """Lower end, which always exists, so that variants are ranked by it."""
    hi: float | None
    verdict: Verdict

    @property
    def rises(self) -> bool:
        """True if the readings support a rising curve over a flat line."""
        return self.verdict not in WITHOUT_RISE

    @property
    def is_bounded(self) -> bool:
        """True if A is a number: the readings bound A from above, and the curve rises to it."""
        return self.A is not None

    def cell(self) -> str:
        """A for a table cell under a heading that names A. A lone lower bound is rounded down."""
        if not self.rises:
            return self.verdict
        if self.A is None or self.hi is None:
            return f">= {math.floor(self.lo * 100) / 100:.2f}"
        return f"{self.A:.3f} [{self.lo:.3f}, {self.hi:.3f}]"

    def __str__(self) -> str:
        """A for a sentence, with its name."""
        return f"A {self.cell()}" if self.rises else self.cell()

    def to_json(self) -> str:
        """The "asymptote" field of `--json`: "0.612 [0.590, 0.633]", "A >= 0.59", "fell" or "no rise"."""
        return self.cell() if self.is_bounded else str(self)


def asymptote_of(A: float, *, lo: float, hi: float | None, verdict: Verdict) -> AsymptoteEstimate:
    """A with its interval; every output gets A from this function. A and its upper end are None unless the readings
    bound A from above and the curve rises.
    """
    is_bounded = verdict not in WITHOUT_RISE and hi is not None
    return AsymptoteEstimate(A=A if is_bounded else None, lo=lo, hi=hi if is_bounded else None, verdict=verdict)


def verdict_on_interval(A_lo: float, A_hi: float | None, *, is_rise_seen: bool) -> Verdict:
    """The verdict on a rising curve: how well its readings bound A, and whether they show the rise to it."""
    if A_hi is None:
        return "lower bound only"
    if A_hi - A_lo > RESOLVED_WIDTH:
        return "roughly known"
    return "resolved" if is_rise_seen else "level only"
