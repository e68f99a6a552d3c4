"""Cells that show a number, and its 95 % interval if it has one; a table sorts them by the number."""

from typing import Protocol

from ablations.fit.asymptote import AsymptoteEstimate
from ablations.report.documents.blocks import Cell
from ablations.text import compute_text, formatted, interval_text, or_dots


class Bounded(Protocol):
    """An estimate with the ends of its interval, None where it is open, such as `Interval` or `Prediction`."""

    @property
    def estimate(self) -> float: ...
    @property
    def lo(self) -> float | None: ...
    @property
    def hi(self) -> float | None: ...


def number_cell(number: float | None, form: str) -> Cell:
    """The number in this format; empty for None."""
    return Cell("") if number is None else Cell(formatted(number, form), number)


def interval_cell(one: Bounded | None, form: str) -> Cell:
    """The cell `0.610 [0.590, 0.633]`, with numbers in this format; empty for None."""
    return Cell("") if one is None else Cell(interval_text(one.estimate, one.lo, one.hi, form), one.estimate)


def compute_cell(compute: float) -> Cell:
    """The cell `10,380` of a compute."""
    return Cell(compute_text(compute), compute)


def compute_interval_cell(one: Bounded | None) -> Cell:
    """The cell `410 [300, …]` of a compute; `…` for an unknown estimate or end."""
    if one is None:
        return Cell("…")
    return Cell(f"{or_dots(one.estimate)} [{or_dots(one.lo)}, {or_dots(one.hi)}]", one.estimate)


def asymptote_cell(one: AsymptoteEstimate) -> Cell:
    """A with its interval, or else its lower bound, which is then also the sort key; a curve without a rise has no
    number."""
    return Cell(one.cell(), (one.lo if one.A is None else one.A) if one.rises else None)
