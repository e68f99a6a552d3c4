"""The axes of the figures of curves: ranges of compute and pass rate, round numbers, and readings thinned for a screen,
each point the mean of neighbours."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ablations.findings.fitted_variant import FittedVariant
from ablations.findings.results import Results
from ablations.fit.result import Fit
from ablations.readings.fitted_run import FittedRun

EXTRAPOLATED_TO = 1.25
"""End of the dashed lines, in budgets."""
NUM_LINE_POINTS = 100
MOST_TICKS = 100
ASYMPTOTES_ABOVE = 0.5
"""Limit on lengthening the pass-rate axis for asymptotes, as a share of its length without them."""
MARGIN, LEAST_MARGIN = 0.08, 0.05
"""Margin on either side of an axis of differences, as a share of its length; and the margin of an axis without a
length."""
MOST_POINTS = 2400
"""Maximum number of markers in a figure; on a screen, more would run into each other."""
LEAST_POINTS_OF_RUN = 12
MIDDLE = 0.98
"""Least share of the readings within an axis; a few that lie far out would squeeze all others."""
OUTER_FENCE = 3.0
"""Distance from the middle half of the values, in its lengths, beyond which a value lies far out (Tukey 1977)."""


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
    tens = [10.0**power for power in range(-12, 25)]
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


def range_around(values: Sequence[float], *, is_ratio: bool = False, margin: float = MARGIN) -> tuple[float, float]:
    """The ends of an axis that covers these differences or ratios, with a margin."""
    low, high = min(values), max(values)
    if is_ratio:
        low, high = math.log(low), math.log(high)
    air = margin * (high - low) or LEAST_MARGIN
    return (math.exp(low - air), math.exp(high + air)) if is_ratio else (low - air, high + air)


def range_without_outliers(
    values: Sequence[float] | np.ndarray, *, is_log: bool = False, share: float = MIDDLE
) -> tuple[float, float]:
    """The ends of the finite values without those that lie far out, by Tukey's outer fences: three lengths of the
    middle half beyond it. At least the middle `share` of the values lies between the ends.

    >>> range_without_outliers([0.1, 0.2, 0.3, 0.4, 9.0], share=0.5)
    (0.1, 0.4)
    """
    known = np.asarray(values, dtype=float)
    known = np.sort(known[np.isfinite(known) & (known > 0 if is_log else True)])
    placed = np.log(known) if is_log else known
    tail = 50 * (1 - share)
    least, low, high, most = np.percentile(placed, [tail, 25, 75, 100 - tail])
    far = OUTER_FENCE * (high - low)
    inside = known[(placed >= min(least, low - far)) & (placed <= max(most, high + far))]
    return float(inside[0]), float(inside[-1])


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


def is_fitted(fit: Fit | None, compute: np.ndarray) -> np.ndarray:
    """A mask of fitted readings: readings in the window, and the reading before RL unless R_0 is free."""
    if fit is None:
        return np.full(compute.shape, False)
    before_rl = (compute == 0) & (fit.r0 != "free")
    return before_rl | (fit.window[0] <= compute) & (compute <= fit.window[1])
