"""Numbers rounded to their uncertainty, for every format of the report and every figure.

Tables on the terminal and on the pages, and files for other programs, keep a fixed number of digits. So do counts,
costs and the numbers of paper mode, which are steps of a grid.

The rule is the Particle Data Group's (Review of Particle Physics, Introduction, section 5.3). If the three leading
digits of the uncertainty lie between 100 and 354, it keeps two digits; from 355 to 949, one; above 949 it is rounded up
to 1000 and keeps two. The uncertainty is half the width of the 95 % interval.

>>> rounded(0.61234, 0.59, 0.6331), rounded(-0.0581, -0.13, 0.02, signed=True)
('0.612 [0.590, 0.633]', '-0.06 [-0.13, +0.02]')
>>> rounded(1.57, 1.21, None), rounded(10384.0, 9512.0, 12040.0)
('1.6 [1.2, …]', '10,400 [9,500, 12,000]')

An end beside "no difference" gets enough digits never to read as if it lay on it.

>>> rounded(0.051, 0.0012, 0.1, signed=True), rounded(0.051, 0.0012, 0.1, signed=True, null=0.0)
('+0.05 [+0.00, +0.10]', '+0.051 [+0.001, +0.100]')
"""

import math
from collections.abc import Callable

from ablations.answers.answer import REFERENCE, Answer, Question
from ablations.fit.asymptote import AsymptoteEstimate

LONE_DIGITS = 3
"""Significant digits of a number without an interval."""
MOST_MORE = 4
"""Limit on added digits that tell an end from "no difference"."""


def places_of(uncertainty: float) -> int:
    """Decimal places for a number with this uncertainty, above 0; negative left of the point."""
    power = math.floor(math.log10(uncertainty))
    leading = round(uncertainty / 10.0 ** (power - 2))
    return (1 if leading < 355 else 0) - power if leading < 950 else -power


def rounded(
    estimate: float | None, lo: float | None, hi: float | None, *, signed: bool = False, null: float | None = None
) -> str:
    """The text `0.612 [0.590, 0.633]`; an unbounded end reads `…`, a missing estimate is left out.

    If only one end is bounded, the uncertainty is its distance from the estimate. The text is empty if nothing is
    given.
    """
    if all(value is None for value in (estimate, lo, hi)):
        return ""
    places = _places(estimate, lo, hi, null)
    texts = [None if value is None else _fixed(value, places, signed) for value in (estimate, lo, hi)]
    if lo is None and hi is None:
        return texts[0] or ""
    return f"{texts[0] or ''} [{texts[1] or '…'}, {texts[2] or '…'}]".strip()


def _places(estimate: float | None, lo: float | None, hi: float | None, null: float | None) -> int:
    """Decimal places for numbers of which at least one is known."""
    known = [value for value in (lo, estimate, hi) if value is not None]
    width = (hi - lo) / 2 if lo is not None and hi is not None else max(known) - min(known)
    if width > 0:
        return _told_from(null, (lo, hi), places_of(width))
    return LONE_DIGITS - 1 - math.floor(math.log10(abs(known[0]))) if known[0] else LONE_DIGITS


def _told_from(null: float | None, ends: tuple[float | None, float | None], places: int) -> int:
    """`places`, or more if an end would be rounded onto `null`."""
    beside = [end for end in ends if null is not None and end is not None and end != null]
    enough = (more for more in range(places, places + MOST_MORE) if all(round(end, more) != null for end in beside))
    return next(enough, places + MOST_MORE)


def _fixed(value: float, places: int, signed: bool) -> str:
    text = f"{round(value, places) + 0.0:{'+' if signed else ''},.{max(places, 0)}f}"
    return text.replace("-", "+", 1) if signed and not text.strip("-+0.,") else text


def rounded_asymptote(estimate: AsymptoteEstimate) -> str:
    """A like `AsymptoteEstimate.cell`, rounded to its interval."""
    return estimate.cell() if estimate.A is None else rounded(estimate.A, estimate.lo, estimate.hi)


def label_of_asymptote(estimate: AsymptoteEstimate) -> str:
    """A for a label, with its name: `A 0.612 [0.590, 0.633]`, `A >= 0.59`, `no rise`."""
    return f"A {rounded_asymptote(estimate)}" if estimate.rises else estimate.cell()


class RoundedDigits:
    """Numbers of a comparison rounded to their intervals; without an interval, to three digits."""

    def interval(self, question: Question, estimate: float | None, lo: float | None, hi: float | None) -> str:
        return rounded(estimate, lo, hi, signed=not question.is_ratio, null=question.no_difference)

    def asymptote(self, estimate: AsymptoteEstimate) -> str:
        return rounded_asymptote(estimate)

    def level(self, level: float, difference: Answer) -> str:
        """A level with as many digits as its difference from the reference's."""
        if difference.estimate is None or difference.verdict == REFERENCE:
            return f"{level:.3f}"
        return _fixed(level, _places(difference.estimate, difference.lo, difference.hi, null=0.0), signed=False)

    def lone(self, value: float, fixed: Callable[[float], str]) -> str:
        return rounded(value, None, None)


ROUNDED = RoundedDigits()
