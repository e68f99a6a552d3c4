"""The content of a figure of curves as plain data, which `curves` draws for a screen and `static` for a paper."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ablations.answers.forecasts import joint_draws
from ablations.answers.run_to_run import RunToRun
from ablations.findings.results import FittedVariant, Results
from ablations.findings.sweep_forecast import spread_of
from ablations.fit.asymptote import AsymptoteEstimate
from ablations.fit.result import Fit
from ablations.readings.fitted_run import FittedRun
from ablations.report.axes import ComputeAxis, compute_axis, score_range_of
from ablations.report.colours import Style, styles
from ablations.report.leading import leading
from ablations.report.thinning import most_points_of_run, thinned

BAND_EVERY = 3
"""Points of a line to one of a band: draws cost time at each, and a band has no sharp bends."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SeedSeries:
    """The readings of one run that have a place on the axis, thinned."""

    seed: int | None
    compute: np.ndarray
    score: np.ndarray
    sizes: np.ndarray
    """The number of readings whose mean each point is."""
    fitted: np.ndarray
    """Mask of fitted readings; the others are drawn hollow."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LineSeries:
    """A part of the mean of the seeds' fitted curves."""

    compute: np.ndarray
    score: np.ndarray
    is_fitted: bool
    """True for the part in which every seed was fitted (solid), False before and beyond (dashed)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BandSeries:
    """The 95 % interval of the mean curve."""

    compute: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, kw_only=True)
class AsymptoteMark:
    """The place of a variant's asymptote at the right edge.

    AsymptoteMark(estimate=estimate, height=0.612, is_above=False)
    """

    estimate: AsymptoteEstimate | None
    """None without a fit."""
    height: float
    """Height of the mark, within the axis: A, its lower bound if A has no upper one, or the end of a curve that does
    not rise."""
    is_above: bool = False
    """True if A lies above the axis, so that `height` is its upper end."""

    @property
    def is_open(self) -> bool:
        """True if the asymptote lies at `height` or above, so that an arrow replaces the point."""
        return self.is_above or (self.estimate is not None and self.estimate.rises and self.estimate.hi is None)


@dataclass(frozen=True, kw_only=True, eq=False)
class VariantSeries:
    """All series of one variant."""

    name: str
    style: Style
    seeds: tuple[SeedSeries, ...]
    lines: tuple[LineSeries, ...]
    band: BandSeries | None
    asymptote: AsymptoteMark


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveSeries:
    """A figure of curves."""

    axis: ComputeAxis
    compute_name: str
    score_range: tuple[float, float]
    variants: tuple[VariantSeries, ...]
    """Variants with readings, in the plan's order, each with a label."""
    others: tuple[tuple[str, LineSeries], ...]
    """The names and mean curves of the variants in the background."""
    budget: float
    fitted_to: float | None
    """End of the window; None if the window ends at the budget."""


def curve_series(
    results: Results,
    *,
    shown: Collection[str] | None = None,
    others: Collection[str] | None = None,
    log_compute: bool = False,
) -> CurveSeries:
    """The content of `curves_figure` and of `curves_picture`, with the same arguments."""
    plan, spread = results.plan, spread_of(results)
    shown = leading(results) if shown is None else [results.variant(name).name for name in shown]
    grey = [one for one in results.variants if one.name not in shown and (others is None or one.name in others)]
    drawn = [variant for variant in results.variants if variant.name in shown]
    axis, look = compute_axis(results, log=log_compute), styles(plan, shown)
    estimates = {variant.name: results.asymptote(variant) for variant in drawn}
    bounded = [one for one in estimates.values() if one is not None and one.A is not None]
    near = [end for one in bounded for end in (one.A, one.hi) if end is not None]
    score_range = score_range_of(drawn, axis, asymptotes=near)
    most = most_points_of_run(sum(len(variant.runs) for variant in drawn))
    found = [
        VariantSeries(
            name=variant.name,
            style=look[variant.name],
            seeds=tuple(_seed(run, axis, most) for run in variant.runs if run.curve is not None),
            lines=tuple(_lines(variant.fits, axis)) if variant.fits else (),
            band=_band(variant.fits, spread, axis) if variant.fits else None,
            asymptote=_mark(variant, estimates[variant.name], axis, score_range),
        )
        for variant in drawn
        if any(run.curve is not None for run in variant.runs)
    ]
    background = axis.grid(axis.first, plan.budget_gpu_hours)[::4]
    return CurveSeries(
        axis=axis,
        compute_name=plan.compute_name,
        score_range=score_range,
        variants=tuple(found),
        others=tuple((one.name, _line(one.fits, background, is_fitted=True)) for one in grey if one.fits),
        budget=plan.budget_gpu_hours,
        fitted_to=plan.fit_to_gpu_hours if plan.fit_to_gpu_hours < plan.budget_gpu_hours else None,
    )


def _seed(run: FittedRun, axis: ComputeAxis, most: int) -> SeedSeries:
    assert run.curve is not None
    drawn = axis.drawn(run.curve.compute)
    compute, score, sizes = thinned(run.curve.compute[drawn], run.curve.score[drawn], most)
    return SeedSeries(seed=run.seed, compute=compute, score=score, sizes=sizes, fitted=is_fitted(run.fit, compute))


def is_fitted(fit: Fit | None, compute: np.ndarray) -> np.ndarray:
    """A mask of fitted readings: readings in the window, and the reading before RL unless R_0 is free."""
    if fit is None:
        return np.full(compute.shape, False)
    before_rl = (compute == 0) & (fit.r0 != "free")
    return before_rl | (fit.window[0] <= compute) & (compute <= fit.window[1])


def _lines(fits: Sequence[Fit], axis: ComputeAxis) -> list[LineSeries]:
    """The mean curve in the range in which all seeds were fitted, and on both sides of it."""
    first = axis.first if axis.log else 0.0
    start = max(fit.window[0] for fit in fits)
    end = max(start, min(fit.window[1] for fit in fits))
    spans = [(first, start, False), (start, end, True), (end, axis.last, False)]
    return [_line(fits, axis.grid(low, high), is_fitted=is_fitted) for low, high, is_fitted in spans if low < high]


def _line(fits: Sequence[Fit], grid: np.ndarray, *, is_fitted: bool) -> LineSeries:
    score = np.mean([fit.predict(grid) for fit in fits], axis=0)
    return LineSeries(compute=grid, score=score, is_fitted=is_fitted)


def _band(fits: Sequence[Fit], spread: RunToRun, axis: ComputeAxis) -> BandSeries:
    """The interval of one seed's curve, or of the mean of several with the run-to-run spread."""
    grid = axis.grid(0.0, axis.last)[::BAND_EVERY]
    if len(fits) == 1:
        low, high = fits[0].predict_interval(grid)
    else:
        low, high = np.quantile(joint_draws(fits, grid, spread=spread), (0.025, 0.975), axis=0)
    return BandSeries(compute=grid, low=low, high=high)


def _mark(
    variant: FittedVariant, estimate: AsymptoteEstimate | None, axis: ComputeAxis, score_range: tuple[float, float]
) -> AsymptoteMark:
    low, high = score_range
    value = _right_end(variant, estimate, axis)
    return AsymptoteMark(estimate=estimate, height=min(max(value, low), high), is_above=value > high)


def _right_end(variant: FittedVariant, estimate: AsymptoteEstimate | None, axis: ComputeAxis) -> float:
    if estimate is None:  # without a fit: the mean of the last readings
        return float(np.mean([run.curve.score[-1] for run in variant.runs if run.curve is not None]))
    if estimate.A is not None:
        return estimate.A
    if estimate.rises:
        return estimate.lo
    return float(np.mean([fit.predict(axis.last)[0] for fit in variant.fits]))
