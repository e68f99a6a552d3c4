"""Curves of pass rate: a few variants in colour, the others grey, against compute or another counter of the runs.

Each variant has a line, the mean of its seeds' fits, with a band, a thin line of readings per seed, and at the right
edge its A with the interval beside its name.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ablations.answers.differences import starts_of
from ablations.answers.rise import rise_together
from ablations.answers.run_to_run import RunToRun
from ablations.findings.fitted_variant import FittedVariant
from ablations.findings.results import Results
from ablations.findings.sweep_forecast import spread_of
from ablations.fit.asymptote import AsymptoteEstimate
from ablations.fit.ends import ends_around
from ablations.fit.result import Fit
from ablations.home.plan import Plan
from ablations.report.figures.axes import (
    ComputeAxis,
    compute_axis,
    is_fitted,
    most_points_of_run,
    score_range_of,
    thinned,
)
from ablations.report.figures.chart import (
    MEASURED,
    Axis,
    Band,
    Chart,
    DottedLine,
    EdgeLabel,
    Mark,
    Panel,
    Series,
    interval,
    law,
)
from ablations.report.figures.colours import OTHERS_COLOUR, Style, leading, styles
from ablations.text import compute_title

CURVES_LEGEND = (
    "Thick lines are fits of ScaleRL eq. 1 (arXiv 2510.13786), averaged over seeds, with their 95 % band; dashed parts "
    "are extrapolated. Thin lines are the evaluations of each seed. A, the fitted ceiling, is at the right edge with "
    "its 95 % interval; an arrow means that it may be higher."
)
"""Caption of `curves_chart`."""
POINTS_LEGEND = "Filled points were fitted, hollow ones were not."
"""Caption of the points."""
ASYMPTOTE_KEY = "A: fitted ceiling [95 %]"
"""The meaning of the labels at the right edge, written below them."""
BAND_EVERY = 3
"""Ratio of the number of points of a line to that of a band, since every point of a band costs time and bands have no
sharp bends."""
Along = Callable[[np.ndarray], np.ndarray]
"""Function from compute to the horizontal axis, for one run or variant."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Another horizontal axis: `Counted(axis=Axis(title="FLOPs", unit="FLOPs"), along={"scalerl": ...})`."""

    axis: Axis
    along: Mapping[str, Along]
    """Functions by variant; a variant that has none is left out."""


def along_rows(compute: np.ndarray, counted: np.ndarray) -> Along:
    """A function from compute to a counter of a run: linear between two evaluations, and at the mean rate beyond the
    last.

        along_rows(np.array([0, 10]), np.array([0, 500]))(np.array([5, 20])) is [250, 1000]
    """
    last, rate = compute[-1], counted[-1] / compute[-1] if compute[-1] else 0.0
    return lambda C: np.interp(C, compute, counted) + rate * np.clip(np.asarray(C, dtype=float) - last, 0, None)


def curves_chart(
    results: Results,
    *,
    shown: Collection[str] | None = None,
    others: Collection[str] | None = None,
    log_compute: bool = False,
    with_points: bool = False,
    counted: Counted | None = None,
) -> Chart:
    """Pass rate against compute with fits, their continuation beyond the budget, and asymptotes.

    `shown` are the variants with a label and, as far as the colours go, their own colour; by default the reference
    and those with the highest level. `others` are grey lines, by default all else. `with_points` also draws the
    evaluations, filled if they were fitted. `counted` replaces compute on the horizontal axis.
    """
    plan = results.plan
    shown = leading(results) if shown is None else [results.variant(name).name for name in shown]
    along = {one.name: lambda C: C for one in results.variants} if counted is None else counted.along
    axis, look = compute_axis(results, log=log_compute), styles(plan, shown)
    focus = [variant for variant in results.variants if variant.name in shown]
    drawn = [one for one in focus if one.name in along and any(run.curve is not None for run in one.runs)]
    estimates = {variant.name: results.asymptote(variant) for variant in focus}
    near = [end for one in estimates.values() if one and one.is_bounded for end in (one.A, one.hi) if end is not None]
    edges = score_range_of(focus, axis, asymptotes=near)
    grey = [one for one in results.variants if one.name not in shown and (others is None or one.name in others)]
    background = axis.grid(axis.first, plan.budget_gpu_hours)[::4]
    marks = _grey_lines([one for one in grey if one.fits and one.name in along], background, along)
    most, spread = most_points_of_run(sum(len(variant.runs) for variant in focus)), spread_of(results)
    for variant in drawn:
        style = look[variant.name] if with_points else replace(look[variant.name], symbol="")
        own = _marks(variant, style, axis, spread, most)
        marks += [replace(mark, x=along[variant.name](np.asarray(mark.x))) for mark in own]
    heights = {one.name: float(np.clip(_right_end(one, estimates[one.name], axis), *edges)) for one in drawn}
    ranked = sorted(heights, key=heights.__getitem__, reverse=True)
    panel = Panel(
        x=_x_axis(results, axis, drawn) if counted is None else replace(counted.axis, is_log=axis.log),
        y=Axis(title="held-out pass rate", range=edges),
        marks=marks,
        strip=[
            one
            for place, name in enumerate(ranked)
            for one in _asymptote(name, estimates[name], place, edges, look[name].colour)
        ],
        rules=_rules(plan) if counted is None else (),
        labels=[
            EdgeLabel(y=height, name=name, text=asymptote_text(estimates[name]), colour=look[name].colour)
            for name, height in heights.items()
        ],
        key=ASYMPTOTE_KEY if any(estimates[name] is not None for name in heights) else "",
    )
    return Chart(alt="Pass rate against compute of each variant; the table has the numbers", panels=[panel])


def _x_axis(results: Results, axis: ComputeAxis, drawn: Sequence[FittedVariant]) -> Axis:
    """Compute to the end of the dashed lines, or to the last reading."""
    ends = [float(run.curve.compute[-1]) for one in drawn for run in one.runs if run.curve is not None]
    span, plan = (axis.at(-0.02), max([axis.last, *ends])), results.plan
    return Axis(title=compute_title(plan.compute_name), unit=plan.hours_name, range=span, is_log=axis.log)


def _rules(plan: Plan) -> list[DottedLine]:
    budget = DottedLine(x=plan.budget_gpu_hours, text="budget")
    if plan.fit_to_gpu_hours >= plan.budget_gpu_hours:
        return [budget]
    return [budget, DottedLine(x=plan.fit_to_gpu_hours, text="fitted to here", is_text_before=True)]


def asymptote_text(estimate: AsymptoteEstimate | None) -> str:
    """A for a figure: `A 0.612 [0.590, 0.633]`, `A ≥ 0.59`, `no rise`; `no fit` without an estimate.

    >>> asymptote_text(AsymptoteEstimate(A=None, lo=0.59, hi=None, verdict="lower bound only"))
    'A ≥ 0.59'
    """
    return str(estimate).replace(">=", "≥") if estimate else "no fit"


def _grey_lines(variants: Sequence[FittedVariant], grid: np.ndarray, along: Mapping[str, Along]) -> list[Mark]:
    """The mean curves of all other variants in one series, distinguished by hover texts."""
    if not variants:
        return []
    return [
        Series(
            x=_with_gaps([along[one.name](grid) for one in variants]),
            y=_with_gaps([_mean(one.fits, grid) for one in variants]),
            texts=[one.name for one in variants for _ in range(grid.size + 1)],
            colour=OTHERS_COLOUR, width=1.0, opacity=0.7, name=f"{len(variants)} others", hover="{text}: {y:.4f}",
        )
    ]  # fmt: skip


def _with_gaps(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.append(part, np.nan) for part in parts])


def _mean(fits: Sequence[Fit], grid: np.ndarray) -> np.ndarray:
    return np.mean([fit.predict(grid) for fit in fits], axis=0)


def _marks(variant: FittedVariant, style: Style, axis: ComputeAxis, spread: RunToRun, most: int) -> list[Series | Band]:
    """A variant against compute: the band, the readings, and the mean curve, solid where all seeds were fitted."""
    found: list[Series | Band] = []
    if variant.fits and rise_together(variant.fits):
        found.append(_band(variant, spread, axis, style.colour))
    found.append(_seeds(variant, axis, most, style))
    if not variant.fits:
        return found
    start = max(fit.window[0] for fit in variant.fits)
    end = max(start, min(fit.window[1] for fit in variant.fits))
    spans = ((axis.first if axis.log else 0.0, start, False), (start, end, True), (end, axis.last, False))
    look = {"colour": style.colour, "name": variant.name, "hover": "{name}, fit: {y:.4f}"}
    grids = [(axis.grid(low, high), is_inside) for low, high, is_inside in spans if low < high]
    return found + [law(grid, _mean(variant.fits, grid), is_fitted=is_inside, **look) for grid, is_inside in grids]


def _band(variant: FittedVariant, spread: RunToRun, axis: ComputeAxis, colour: str) -> Band:
    """The interval of one seed's curve, or of the mean of several with the run-to-run spread."""
    fits, grid = variant.fits, axis.grid(0.0, axis.last)[::BAND_EVERY]
    draws = np.mean([fit.predict_draws(grid) for fit in fits], axis=0)
    if len(fits) > 1:
        draws = draws + spread.mean_offsets(starts_of(fits), len(draws))[:, None]
    low, high = ends_around(_mean(fits, grid), draws.clip(0, max(fit.settings.highest for fit in fits)))
    return Band(x=grid, low=np.asarray(low), high=np.asarray(high), colour=colour, name=variant.name)


def _seeds(variant: FittedVariant, axis: ComputeAxis, most: int, style: Style) -> Series:
    """A thin line through the readings of each seed, in one series; points on it are filled if they were fitted."""
    x, y, texts, filled = [], [], [], []
    for run in variant.runs:
        if run.curve is None:
            continue
        placed = (run.curve.compute > 0) | (not axis.log)  # compute 0 has no place on a logarithmic axis
        compute, score, sizes = thinned(run.curve.compute[placed], run.curve.score[placed], most)
        x.append(compute)
        y.append(score)
        texts += [f"seed {run.seed}{f', mean of {size} evaluations' if size > 1 else ''}" for size in sizes] + [""]
        filled += [*is_fitted(run.fit, compute), True]
    return Series(
        x=_with_gaps(x), y=_with_gaps(y), texts=texts, name=variant.name, colour=style.colour, symbol=style.symbol,
        is_filled=filled, size=5.0, width=MEASURED, opacity=0.5, hover="{name}, {text}\n{x:.4g} {unit}: {y:.4f}",
    )  # fmt: skip


def _right_end(variant: FittedVariant, estimate: AsymptoteEstimate | None, axis: ComputeAxis) -> float:
    """The height of a variant's label: A, its lower bound if A has no upper one, or the end of the curve."""
    if estimate is None:  # without a fit: the mean of the last readings
        return float(np.mean([run.curve.score[-1] for run in variant.runs if run.curve is not None]))
    if estimate.A is not None:
        return estimate.A
    return estimate.lo if estimate.rises else float(np.mean([fit.predict(axis.last)[0] for fit in variant.fits]))


def _asymptote(
    name: str, estimate: AsymptoteEstimate | None, place: int, edges: tuple[float, float], colour: str
) -> list[Series]:
    """A with its interval; nothing for a curve that does not rise."""
    if estimate is None or not estimate.rises:
        return []
    hover = f"{{name}}: {asymptote_text(estimate)}"
    look = {"colour": colour, "name": name, "hover": hover, "is_upright": True}
    return interval(estimate.lo, estimate.A, estimate.hi, at=place, edges=edges, **look)
