"""Fits as a document: every number with its interval, and no number that means nothing."""

import numpy as np

from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.readings.fitted_run import FittedCurve
from ablations.report.documents.blocks import Table, Text
from ablations.report.documents.fit import fit_document


def fitted(name: str = "c", *, end: float = 80_000.0, is_flat: bool = False) -> FittedCurve:
    """ScaleRL's curve over ten times its compute, or a flat line, with white noise of sd .003."""
    compute = np.arange(0, end + 1, 2130.0)
    law = np.append(0.3, 0.3 + 0.31 / (1 + (25_420 / compute[1:]) ** 1.92))
    score = np.full(compute.size, 0.4) if is_flat else law
    curve = Curve(
        name=name, compute=compute, score=score + 0.003 * np.random.default_rng(1).standard_normal(score.size)
    )
    return FittedCurve(name=name, curve=curve, fit=fit_curve(curve))


def row_of(one: FittedCurve) -> dict[str, tuple[str, float | None]]:
    """The cells that are not empty, by heading: text and number."""
    table, *_ = fit_document([one])
    (row,) = table.rows
    return {
        column.heading: (cell.text, cell.number) for column, cell in zip(table.columns, row, strict=True) if cell.text
    }


def test_a_fit_is_a_row_of_numbers_with_intervals():
    one = fitted()
    fit = one.fit
    found = row_of(one)
    # 25,420 or so, to four digits.
    C_mid, lo, hi = (f"{round(one, -1):,.0f}" for one in (fit.C_mid, fit.C_mid_lo, fit.C_mid_hi) if one)
    assert found == {
        "curve": ("c", None),
        "A [95 %]": (str(fit.asymptote).removeprefix("A "), fit.asymptote.A),
        "A under eq. 1": (f"{fit.eq1_A:.3f} [{fit.eq1_lo:.3f}, {fit.eq1_hi:.3f}]", fit.eq1_A),
        "B [95 %]": (f"{fit.B:.2f} [{fit.B_lo:.2f}, {fit.B_hi:.2f}]", fit.B),
        "C_mid [95 %]": (f"{C_mid} [{lo}, {hi}]", fit.C_mid),
        "R_0": (f"{fit.R_0:.3f}", fit.R_0),
        "points": ("37", 37),
        "window": ("2,130 to 78,810", 78_810.0),
        "R²": (f"{fit.r_squared:.3f}", fit.r_squared),
        "fit": (fit.verdict, None),
    }


def test_a_flat_curve_has_neither_b_nor_c_mid_nor_a_bound_from_any_start():
    one = fitted(is_flat=True)
    found = row_of(one)
    assert list(found) == ["curve", "A [95 %]", "R_0", "points", "window", "R²", "fit"]
    assert found["A [95 %]"][0] == found["fit"][0] == "no rise"
    cutoffs = fit_document([one], explained=True)[-1]
    assert len(cutoffs.rows) >= 5
    assert {tuple(cell.text for cell in row[2:]) for row in cutoffs.rows} == {("no rise", "no rise")}


def test_of_a_gain_without_an_end_half_has_a_lower_end_only():
    one = fitted(end=24_000.0)
    assert one.fit.ceiling.hi is None
    found = row_of(one)
    assert found["A [95 %]"] == (f">= {int(100 * one.fit.ceiling.lo) / 100:.2f}", one.fit.asymptote.lo)
    assert found["A under eq. 1"][0] == f">= {int(100 * one.fit.eq1_lo) / 100:.2f}"
    assert found["B [95 %]"][0].startswith(f"{one.fit.B:.2f} [")
    assert found["C_mid [95 %]"][0].startswith("[1")
    assert found["C_mid [95 %]"][0].endswith(", …]")


def test_a_curve_without_a_fit_says_why():
    without = FittedCurve(name="a", curve=None, fit=None, reason="curve 'a': too short")
    assert row_of(without) == {"curve": ("a", None), "fit": ("curve 'a': too short", None)}
    assert Text(text="curve 'a': too short", kind="warning") in fit_document([without], explained=True)


def test_suspicious_readings_are_a_warning_below_the_table():
    one = fitted()
    odd = Curve(name="c", compute=one.curve.compute, score=np.where(np.arange(38) == 20, 0.0, one.curve.score))
    fit = fit_curve(odd)
    table, warning = fit_document([FittedCurve(name="c", curve=odd, fit=fit)])
    assert isinstance(table, Table)
    assert warning == Text(text=f"c: {fit.oddities[0]}.", kind="warning")
