"""Two views that separate variants that move the ceiling from variants that change the speed of getting there: the
plane of ceiling and compute, and readings on axes on which eq. 1 is a straight line of slope B (ScaleRL figure 7).
"""

from collections.abc import Collection
from itertools import chain
from typing import Any

import numpy as np

from ablations.answers.compare import VariantResult
from ablations.answers.paper_grid import PaperFit
from ablations.findings.paper_comparison import PaperComparison, PaperVariant
from ablations.findings.results import Results
from ablations.home.plan import Plan
from ablations.report.figures.axes import most_points_of_run, range_around, range_without_outliers, thinned
from ablations.report.figures.chart import Axis, Chart, DottedLine, Mark, Panel, Series, law, literal
from ablations.report.figures.colours import OTHERS_COLOUR, Style, styles
from ablations.text import compute_title

PLANE_LEGEND = (
    "Up: a higher ceiling than the baseline's. Left: less compute to the common target. A variant far up or down "
    "moves the ceiling, one far left or right the compute. Bars are 95 % intervals; a bar without an end stops at the "
    "frame, and a variant without either number is not drawn."
)
"""Caption of `plane_chart`."""
LINEARISED_LEGEND = (
    "log F(R) against log C with F(R) = C_mid^B / ((A - R_0) / (R - R_0) - 1), so that eq. 1 is the line F = C^B of "
    "slope B (ScaleRL figure 7, arXiv 2510.13786). Filled points were fitted, hollow ones were not; dashes are "
    "extrapolated. Variants with the reference's A within 0.02 are drawn at the common A."
)
"""Caption of `linearised_chart`."""


def plane_chart(results: Results, *, focus: Collection[str]) -> Chart:
    """Difference in A against the ratio of compute, both relative to the baseline and with intervals; `focus` is in
    colour."""
    look, reference = styles(results.plan, focus), results.plan.reference
    lines = results.comparison.variants if results.comparison else ()
    others = [line for line in lines if line.name != reference and is_placed(line)]
    answers = [answer for line in others for answer in (line.answers["compute"], line.answers["ceiling"])]
    known = [[end for end in (one.estimate, one.lo, one.hi) if end is not None] for one in answers]
    across, up = range_around([1.0, *chain(*known[::2])], is_ratio=True), range_around([0.0, *chain(*known[1::2])])
    marks = [_cross(line, look[line.name] if line.name in focus else None, across, up) for line in others]
    base, name = look[reference], f"{reference} (baseline)"
    point: dict[str, Any] = {"x": [1.0], "y": [0.0], "colour": base.colour, "symbol": base.symbol, "size": 11.0}
    marks.append(Series(name=name, legend=name, hover="{name}", **point))
    panel = Panel(
        x=Axis(title="compute ÷ baseline (under 1 needs less)", range=across, is_log=True),
        y=Axis(title="ceiling A − baseline", range=up), marks=marks,
        rules=[DottedLine(x=1.0), DottedLine(y=0.0)], height=380,
    )  # fmt: skip
    return Chart(alt="Difference of ceilings against ratio of compute, with intervals", panels=[panel], legend="below")


def is_placed(line: VariantResult) -> bool:
    """True if a variant has both a difference of ceilings and a ratio of compute."""
    answers = line.answers
    is_known = answers["compute"].estimate is not None and answers["ceiling"].estimate is not None
    return is_known and line.asymptote.is_bounded


def _cross(line: VariantResult, style: Style | None, across: tuple[float, float], up: tuple[float, float]) -> Series:
    """A variant with both intervals; small and grey without a style."""
    compute, ceiling = line.answers["compute"], line.answers["ceiling"]
    assert compute.estimate is not None
    assert ceiling.estimate is not None
    x_ends, y_ends = (
        ([edges[0] if one.lo is None else one.lo], [edges[1] if one.hi is None else one.hi])
        for one, edges in ((compute, across), (ceiling, up))
    )
    said = literal(f"ceiling {ceiling.cell}\ncompute {compute.cell}")
    look = style or Style(colour=OTHERS_COLOUR, symbol="circle")
    return Series(
        x=[compute.estimate], y=[ceiling.estimate], x_ends=x_ends, y_ends=y_ends, colour=look.colour,
        symbol=look.symbol, size=11.0 if style else 7.0, name=line.name, legend=line.name if style else "",
        hover=f"{{name}}\n{said}",
    )  # fmt: skip


def linearised_score(fit: PaperFit, score: np.ndarray) -> np.ndarray:
    """F(R) of each pass rate; NaN if undefined, for R <= R_0 or R >= A.

    F(R) = C_mid^B / ((A - R_0) / (R - R_0) - 1). By eq. 1 (A - R_0) / (R - R_0) - 1 = (C_mid / C)^B, so F = C^B.
    """
    inside = (score > fit.R_0) & (score < fit.A)
    gained = np.where(inside, score - fit.R_0, np.nan)
    return fit.C_mid**fit.B * gained / (fit.A - fit.R_0 - gained)


def linearised_chart(comparison: PaperComparison, plan: Plan, focus: Collection[str]) -> Chart:
    """The readings of every variant on axes on which its fit is a line of slope B; `focus` may have a colour."""
    look = styles(plan, focus)
    most = most_points_of_run(sum(len(_drawn(variant)) for variant in comparison.variants))
    marks: list[Mark] = []
    for variant in comparison.variants:
        style, fits = look[variant.name], _drawn(variant)
        A, B = (float(np.mean(values)) for values in ([fit.A for fit in fits], [fit.B for fit in fits]))
        own: dict[str, Any] = {"colour": style.colour, "name": variant.name}
        said = f"{variant.name}: B {B:.2f} at A {A:.3f}"
        marks.append(Series(x=[np.nan], y=[np.nan], width=2.0, symbol=style.symbol, legend=said, **own))
        for fit in fits:
            marks += _lines(fit, own)
            # The reading at compute 0 is R_0 itself.
            compute, score, _ = thinned(fit.curve.compute[1:], fit.curve.score[1:], most)
            F = linearised_score(fit, score)
            shown = np.isfinite(F)
            fitted = ((fit.window[0] <= compute) & (compute <= fit.window[1]))[shown]
            texts = [f"{rate:.4f}" for rate in score[shown]]
            hover = f"{literal(fit.curve.name)}\n{{x:.4g}} {{unit}}: {{text}}"
            points = {"x": compute[shown], "y": F[shown], "texts": texts, "symbol": style.symbol, "is_filled": fitted}
            marks.append(Series(hover=hover, **points, **own))
    panel = Panel(
        x=Axis(title=compute_title(plan.compute_name), unit=plan.hours_name, is_log=True),
        y=Axis(title="F(R)", is_log=True, range=linearised_range(comparison)), marks=marks, height=400,
    )  # fmt: skip
    return Chart(alt="Evaluations on axes on which eq. 1 is a straight line", panels=[panel], legend="below")


def linearised_range(comparison: PaperComparison) -> tuple[float, float] | None:
    """The ends of the axis of F without readings that lie far out: one just below A has an F of any size."""
    known = [linearised_score(fit, fit.curve.score[1:]) for one in comparison.variants for fit in _drawn(one)]
    found = np.concatenate([one[np.isfinite(one)] for one in known]) if known else np.array([])
    return range_around(range_without_outliers(found, is_log=True), is_ratio=True) if found.size else None


def linearised_note(comparison: PaperComparison) -> str:
    """The number of readings without a place in `linearised_chart`, and why."""
    drawn = [(fit, fit.curve.score[1:]) for variant in comparison.variants for fit in _drawn(variant)]
    num_low = sum(int((score <= fit.R_0).sum()) for fit, score in drawn)
    num_high = sum(int(((score > fit.R_0) & (score >= fit.A)).sum()) for fit, score in drawn)
    ends = linearised_range(comparison) or (0.0, np.inf)
    beyond = [linearised_score(fit, score) for fit, score in drawn]
    num_beyond = sum(int(((one < ends[0]) | (one > ends[1])).sum()) for one in beyond)
    above = f" {num_beyond} more lie beyond the axis." if num_beyond else ""
    return (
        f"{num_low + num_high} of {sum(score.size for _, score in drawn)} evaluations after step 0 have no F and are "
        f"left out: {num_low} with R <= R_0, {num_high} with R >= A.{above}"
    )


def _drawn(variant: PaperVariant) -> tuple[PaperFit, ...]:
    """The fits at the common A if there are any, since only those are compared by slope, else the plain fits."""
    return variant.refits or variant.fits


def _lines(fit: PaperFit, look: dict[str, str]) -> list[Series]:
    """The line F = C^B, solid inside the window and dashed on both sides."""
    start, end = fit.window
    first, last = float(fit.curve.compute[1]), float(fit.curve.compute[-1])
    return [
        law(np.array([low, high]), np.array([low, high]) ** fit.B, is_fitted=is_fitted, **look)
        for low, high, is_fitted in ((first, start, False), (start, end, True), (end, last, False))
        if low < high
    ]
