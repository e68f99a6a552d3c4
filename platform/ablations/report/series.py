"""The content of a figure of curves as plain data, which `curves` draws for a screen and `static` for a paper, and
the range of compute and pass rate of its axes.

Readings are thinned for a screen: each point is the mean of neighbours.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ablations.answers.forecasts import joint_draws
from ablations.answers.run_to_run import RunToRun
from ablations.findings.results import FittedVariant, Results
from ablations.findings.sweep_forecast import ForecastBand, spread_of
from ablations.fit.asymptote import AsymptoteEstimate
from ablations.fit.result import Fit
from ablations.readings.fitted_run import FittedRun
from ablations.report.colours import Style, leading, styles

EXTRAPOLATED_TO = 1.25
"""End of the dashed lines, in budgets."""
NUM_LINE_POINTS = 100
MOST_TICKS = 100
ASYMPTOTES_ABOVE = 0.5
"""Limit on lengthening the pass-rate axis for asymptotes, as a share of its length without them."""
MOST_POINTS = 2400
"""Limit on the markers of a figure; more cannot be told apart on a screen."""
LEAST_POINTS_OF_RUN = 12
BAND_EVERY = 3
"""Points of a line to one of a band: draws cost time at each, and a band has no sharp bends."""


@dataclass(frozen=True, kw_only=True)
class ComputeAxis:
    """The horizontal axis: compute from `first` to `last`, linear or logarithmic."""

    first: float
    """Smallest measured compute above 0."""
    last: float
    log: bool

    def grid(self, start: float, end: float) -> np.ndarray:
        """Compute from `start` to `end`, evenly spaced on the axis."""
        if self.log:
            return np.geomspace(max(start, self.first), end, NUM_LINE_POINTS)
        return np.linspace(start, end, NUM_LINE_POINTS)

    def at(self, share: float) -> float:
        """The compute at a share of the axis' length."""
        if self.log:
            return float(self.first * (self.last / self.first) ** share)
        return share * self.last


def ticks(low: float, high: float, most: int, *, log: bool) -> list[float]:
    """Round numbers on an axis of differences (0 among them) or of ratios (1 among them), at most `most`.

    >>> ticks(-0.083, 0.079, 3, log=False), ticks(0.4, 2.3, 3, log=True), ticks(0.95, 1.7, 3, log=True)
    ([-0.05, 0.0, 0.05], [0.5, 1.0, 2.0], [1.0, 1.3, 1.6])
    """
    tens = [10.0**power for power in range(-6, 7)]
    if log and high / low >= 3:
        choices = [[base * ten for ten in tens for base in bases] for bases in ((1, 2, 5), (1, 3), (1,))]
        choices += [tens[::2], tens[::3]]
    else:
        choices = [
            [log + step * place for place in range(math.ceil((low - log) / step), math.floor((high - log) / step) + 1)]
            for step in (base * ten for ten in tens for base in (1, 2, 3, 5))
            if (high - low) / step < MOST_TICKS
        ]
    inside = [[float(f"{value:.6g}") for value in values if low <= value <= high] for values in choices]
    return next((values for values in inside if len(values) <= most), [])


def compute_axis(results: Results, *, log: bool, budgets: float = EXTRAPOLATED_TO) -> ComputeAxis:
    """The axis from the first reading to this number of budgets."""
    last = budgets * results.plan.budget_gpu_hours
    measured = [run.curve.compute[run.curve.compute > 0] for run in results.runs if run.curve is not None]
    first = min((float(compute[0]) for compute in measured if compute.size), default=last / 100)
    return ComputeAxis(first=first, last=last, log=log)


def score_range_of(
    variants: Sequence[FittedVariant], axis: ComputeAxis, *, asymptotes: Sequence[float] = ()
) -> tuple[float, float]:
    """The range from the lowest reading to the highest reading, fitted curve or nearby asymptote, with a margin."""
    values = [value for variant in variants for run in variant.runs for value in _extremes(run, axis)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    highest = low + (1 + ASYMPTOTES_ABOVE) * (high - low)
    high = max([high, *(asymptote for asymptote in asymptotes if asymptote <= highest)])
    air = 0.06 * max(high - low, 0.02)
    return low - air, high + air


def _extremes(run: FittedRun, axis: ComputeAxis) -> list[float]:
    measured = [] if run.curve is None else [float(run.curve.score.min()), float(run.curve.score.max())]
    fitted = [] if run.fit is None else [float(run.fit.predict(axis.last)[0])]
    return measured + fitted


def most_points_of_run(num_runs: int) -> int:
    """Limit on the points of each run in a figure with this number of runs."""
    return max(LEAST_POINTS_OF_RUN, MOST_POINTS // max(num_runs, 1))


def thinned(compute: np.ndarray, score: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At most `most` points: means of neighbouring readings in groups of nearly equal size, and the size of each group.

    thinned([1, 2, 3, 4], [.1, .3, .5, .7], 2) is ([1.5, 3.5], [.2, .6], [2, 2])
    """
    parts = min(most, compute.size)
    chunks = [(np.array_split(values, parts)) for values in (compute, score)]
    means = [np.array([part.mean() for part in chunk]) for chunk in chunks]
    return means[0], means[1], np.array([part.size for part in chunks[0]])


def thinned_note(results: Results, focus: Sequence[str]) -> str:
    """A note if the points of a figure of these variants are means of readings; else empty."""
    runs = [run for name in focus for run in results.variant(name).runs if run.curve is not None]
    most = most_points_of_run(len(runs))
    sizes = [run.curve.compute.size / most for run in runs if run.curve is not None]
    if max(sizes, default=0) <= 1:
        return ""
    return f"Each point is the mean of up to {int(np.ceil(max(sizes)))} neighbouring evaluations."


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
    band: ForecastBand | None
    """The 95 % interval of the mean curve."""
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
    """The content of `curves_figure` and of `curves_picture`; `others` are grey lines, by default all but `shown`."""
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
    drawn = (run.curve.compute > 0) | (not axis.log)  # compute 0 has no place on a logarithmic axis
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


def _band(fits: Sequence[Fit], spread: RunToRun, axis: ComputeAxis) -> ForecastBand:
    """The interval of one seed's curve, or of the mean of several with the run-to-run spread."""
    grid = axis.grid(0.0, axis.last)[::BAND_EVERY]
    if len(fits) == 1:
        low, high = fits[0].predict_interval(grid)
    else:
        low, high = np.quantile(joint_draws(fits, grid, spread=spread), (0.025, 0.975), axis=0)
    return ForecastBand(compute=grid, low=low, high=high)


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
