"""The fits of curves as a document: a line per curve, and each fit in words."""

from collections.abc import Sequence

from ablations.answers.interval import Interval
from ablations.fit.asymptote import EQ1_DOUBTED
from ablations.fit.fitting import fits_by_cutoff
from ablations.fit.result import Fit
from ablations.fit.words import in_words
from ablations.readings.fitted_run import FittedCurve
from ablations.report.documents.blocks import Blocks, Cell, Heading, Text, table_of_rows
from ablations.report.documents.number_cells import asymptote_cell, interval_cell, number_cell
from ablations.text import compute_text


def fit_document(fitted: Sequence[FittedCurve], *, explained: bool = False) -> Blocks:
    """A line per curve with its fit, or the reason why it has none, and warnings about suspicious readings; then, if
    `explained`, each fit in words, with A for other starts of its window."""
    odd = [f"{one.name}: {text}." for one in fitted if one.fit for text in one.fit.oddities]
    table = table_of_rows([_cells(one) for one in fitted], name="fits", kinds={"fit": "prose"})
    words = [block for one in fitted for block in _in_words(one)] if explained else []
    return [table, *(Text(text=text, kind="warning") for text in odd), *words]


def _cells(one: FittedCurve) -> dict[str, Cell | str]:
    headings = ("A [95 %]", "A under eq. 1", "B [95 %]", "C_mid [95 %]", "R_0", "points", "window", "R²")
    if (fit := one.fit) is None:
        return {"curve": one.name, **dict.fromkeys(headings, ""), "fit": one.reason}
    first, last = map(compute_text, fit.window)
    numbers: tuple[Cell | str, ...] = (
        asymptote_cell(fit.asymptote),
        asymptote_cell(fit.asymptote_under_eq1) if fit.rises else "",
        interval_cell(Interval(estimate=fit.B, lo=fit.B_lo, hi=fit.B_hi), ".2f") if fit.rises else "",
        Cell(fit.midpoint_cell(), fit.C_mid),
        number_cell(fit.R_0, ".3f"),
        number_cell(fit.points, "d"),
        Cell(f"{first} to {last}", fit.window[1]),
        number_cell(fit.r_squared, ".3f"),
    )
    word = f"{fit.verdict}; {EQ1_DOUBTED}" if fit.doubts_eq1 else fit.verdict
    return {"curve": one.name, **dict(zip(headings, numbers, strict=True)), "fit": word}


def _in_words(one: FittedCurve) -> Blocks:
    if one.fit is None:
        return [Heading(text=one.name, level=3), Text(text=one.reason, kind="warning")]
    table = table_of_rows(
        [_cutoff_cells(fit_from, fit) for fit_from, fit in fits_by_cutoff(one.fit).items()],
        name=f"cutoffs-{one.name}",
        kinds={"from compute": "number", "fit": "words"},
    )
    return [Heading(text=one.name, level=3), Text(text=in_words(one.fit)), table]


def _cutoff_cells(fit_from: float, fit: Fit) -> dict[str, Cell | str]:
    return {
        "from compute": Cell(compute_text(fit_from), fit_from),
        "points": number_cell(fit.points, "d"),
        "A [95 %]": asymptote_cell(fit.asymptote),
        "fit": fit.verdict,
    }
