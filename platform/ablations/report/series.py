"""The content of a picture of curves as plain data, which `static` draws."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ablations.findings.results import FittedVariant, Results
from ablations.fit.asymptote import AsymptoteEstimate
from ablations.fit.result import Fit
from ablations.readings.fitted_run import FittedRun
from ablations.report.axes import ComputeAxis, compute_axis, score_range_of
from ablations.report.colours import Style, styles


@dataclass(frozen=True, kw_only=True, eq=False)
class PointSeries:
    """The readings of one run that have a place on the axis."""

    compute: np.ndarray
    score: np.ndarray
    fitted: np.ndarray
    """Mask of fitted readings; the others are drawn hollow."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LineSeries:
    """A part of a fitted curve."""

    compute: np.ndarray
    score: np.ndarray
    is_fitted: bool
    """True inside the window (solid), False outside it (dashed)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BandSeries:
    """The 95 % interval of a fitted curve."""

    compute: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, kw_only=True)
class AsymptoteMark:
    """The place of a variant's asymptote at the right edge.

    AsymptoteMark(estimate=estimate, height=0.612, is_above=False)
    """

    estimate: AsymptoteEstimate
    height: float
    """A; its lower bound if A has no upper one; the end of the curve if it does not rise. Always within the axis."""
    is_above: bool
    """True if A lies above the axis, so that `height` is its upper end."""

    @property
    def is_open(self) -> bool:
        """True if the asymptote lies at `height` or above, so that an arrow replaces the stroke."""
        return self.is_above or (self.estimate.rises and self.estimate.hi is None)


@dataclass(frozen=True, kw_only=True, eq=False)
class VariantSeries:
    """All series of one variant; only its name if it has no readings."""

    name: str
    style: Style
    points: tuple[PointSeries, ...]
    lines: tuple[LineSeries, ...]
    bands: tuple[BandSeries, ...]
    asymptote: AsymptoteMark | None


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveSeries:
    """A figure of curves."""

    axis: ComputeAxis
    score_range: tuple[float, float]
    variants: tuple[VariantSeries, ...]
    """Variants with readings, in the plan's order."""
    budget: float
    fitted_to: float | None
    """End of the window; None if that is the budget."""


def curve_series(
    results: Results,
    *,
    shown: Collection[str] | None = None,
    banded: Collection[str] | None = None,
    log_compute: bool = False,
) -> CurveSeries:
    """The content of `curves_picture`, with the same arguments; AblationsError for an unknown variant."""
    plan = results.plan
    banded = [plan.reference] if banded is None else banded
    chosen = None if shown is None else {results.variant(name).name for name in shown}
    drawn = [variant for variant in results.variants if chosen is None or variant.name in chosen]
    axis, look = compute_axis(results, log=log_compute), styles(plan)
    estimates = {variant.name: one for variant in drawn if variant.fits and (one := results.asymptote(variant))}
    score_range = score_range_of(drawn, axis, asymptotes=[one.A for one in estimates.values() if one.A is not None])
    marks = _marks(drawn, estimates, axis, score_range)
    found = [
        VariantSeries(
            name=variant.name,
            style=look[variant.name],
            points=tuple(_points(run, axis) for run in variant.runs if run.curve is not None),
            lines=tuple(line for fit in variant.fits for line in _lines(fit, axis)),
            bands=tuple(_band(fit, axis) for fit in variant.fits) if variant.name in banded else (),
            asymptote=marks.get(variant.name),
        )
        for variant in drawn
    ]
    return CurveSeries(
        axis=axis,
        score_range=score_range,
        variants=tuple(one for one in found if one.points or one.lines),
        budget=plan.budget_gpu_hours,
        fitted_to=plan.fit_to_gpu_hours if plan.fit_to_gpu_hours < plan.budget_gpu_hours else None,
    )


def _points(run: FittedRun, axis: ComputeAxis) -> PointSeries:
    assert run.curve is not None
    drawn = axis.drawn(run.curve.compute)
    compute, score = run.curve.compute[drawn], run.curve.score[drawn]
    return PointSeries(compute=compute, score=score, fitted=is_fitted(run.fit, compute))


def is_fitted(fit: Fit | None, compute: np.ndarray) -> np.ndarray:
    """A mask of fitted readings: those in the window, and the one before RL unless R_0 is free."""
    if fit is None:
        return np.full(compute.shape, False)
    before_rl = (compute == 0) & (fit.r0 != "free")
    return before_rl | (fit.window[0] <= compute) & (compute <= fit.window[1])


def _lines(fit: Fit, axis: ComputeAxis) -> list[LineSeries]:
    """The curve inside the window and on both sides of it."""
    start, end = fit.window
    spans = [(axis.first if axis.log else 0.0, start, False), (start, end, True), (end, axis.last, False)]
    return [
        LineSeries(compute=grid, score=fit.predict(grid), is_fitted=is_fitted)
        for low, high, is_fitted in spans
        if low < high
        for grid in [axis.grid(low, high)]
    ]


def _band(fit: Fit, axis: ComputeAxis) -> BandSeries:
    grid = axis.grid(0.0, axis.last)
    low, high = fit.predict_interval(grid)
    return BandSeries(compute=grid, low=low, high=high)


def _marks(
    drawn: Sequence[FittedVariant],
    estimates: dict[str, AsymptoteEstimate],
    axis: ComputeAxis,
    score_range: tuple[float, float],
) -> dict[str, AsymptoteMark]:
    """The asymptotes at the right edge, by variant."""
    values = {
        variant.name: _right_end(variant, estimates[variant.name], axis)
        for variant in drawn
        if variant.name in estimates
    }
    low, high = score_range
    return {
        name: AsymptoteMark(estimate=estimates[name], height=min(max(value, low), high), is_above=bool(value > high))
        for name, value in values.items()
    }


def _right_end(variant: FittedVariant, asymptote: AsymptoteEstimate, axis: ComputeAxis) -> float:
    if asymptote.A is not None:
        return asymptote.A
    if asymptote.rises:
        return asymptote.lo
    return float(np.mean([fit.predict(axis.last)[0] for fit in variant.fits]))
