"""The level at equal compute: the pass rate of runs that have spent the same compute, without a fitted law.

The level is the mean pass rate over the last third of the compute at which runs are compared (`footing`), with readings
joined by straight lines if they are close enough. No law enters, so the level holds even if eq. 1 does not, and it is
known far better than a ceiling.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ablations.answers.footing import Footing, footing_of, read_at
from ablations.answers.repeats import Repeats
from ablations.fit.curve import Curve
from ablations.fit.result import Fit

LAST_SHARE = 1 / 3
"""Share of the common compute: late enough to show the effect of the budget, long enough for several readings."""
WIDEST_LINE = 2.2
"""Largest ratio of the computes of two readings that a line may join. Over the last third such a line lies at most .010
too low on a curve of eq. 1 with B = 1 that rises by .5; a line from the reading before training, up to .3."""


@dataclass(frozen=True, kw_only=True)
class Level:
    """The level of one run and its sampling variance: Level(value=0.5931, variance=3.1e-6)."""

    value: float
    variance: float


def last_compute(fit: Fit) -> float:
    """The compute that a run has reached, within the fitted window."""
    return min(float(fit.curve.compute[-1]), fit.settings.fit_to)


def footing_of_fits(fits: Mapping[str, Sequence[Fit]], reference: str | None = None) -> Footing:
    """The footing of the variants, from their fits; needs at least one fit."""
    found = footing_of({name: [last_compute(fit) for fit in some] for name, some in fits.items()}, reference)
    assert found is not None
    return found


def compared_at(fits: Sequence[Fit]) -> float:
    """The compute at which these runs are compared."""
    return footing_of_fits({"": fits}).compute


def read_at_of(fits: Sequence[Fit], compute: float) -> float:
    """The compute at which the runs of a variant are read in a comparison at `compute`."""
    return read_at([last_compute(fit) for fit in fits], compute)


def reaching(fits: Sequence[Fit], compute: float) -> list[Fit]:
    """The runs that have reached this compute."""
    return [fit for fit in fits if last_compute(fit) >= compute]


def levels_of(fits: Sequence[Fit], compute: float) -> Repeats | None:
    """The level of each run that has reached this compute; None if there is none, or if the readings of one begin too
    late. All levels get their mean error, so that every seed weighs the same.
    """
    some = reaching(fits, compute)
    levels = [level_of(fit.curve, compute) for fit in some]
    known = [level for level in levels if level is not None]
    if not known or None in levels:
        return None
    variance = float(np.mean([level.variance for level in known]))
    return Repeats.of([level.value for level in known], [variance] * len(known), [fit.curve.start for fit in some])


@lru_cache(maxsize=4096)  # a comparison asks several times for each run, and another baseline again
def level_of(curve: Curve, compute: float) -> Level | None:
    """The mean of the readings, joined by lines, over the last third of `compute`; None if they begin later, or lie so
    far apart that lines miss how the curve bends.

    The variance of a reading is that of its finite samples, 0 if unknown.
    """
    start = (1 - LAST_SHARE) * compute
    if not curve.compute[0] <= start < compute <= curve.compute[-1]:
        return None
    first, end = np.searchsorted(curve.compute, start, side="right") - 1, np.searchsorted(curve.compute, compute)
    around = curve.compute[first : end + 1]
    if np.any(around[1:] > WIDEST_LINE * around[:-1]):
        return None
    weights = mean_weights(curve.compute, start, compute)
    value = float(weights @ curve.score)
    known = curve.sampling_variance
    return Level(value=value, variance=0.0 if known is None else float(weights**2 @ known))


def mean_weights(compute: np.ndarray, start: float, end: float) -> np.ndarray:
    """Weight of each reading, shape (num_points,), in the mean from `start` to `end` of the lines joining them.

    The trapezoid rule is exact on lines. The weights add up to 1.
    """
    inside = compute[(start < compute) & (compute < end)]
    ends = np.concatenate([[start], inside, [end]])
    left = np.clip(np.searchsorted(compute, ends, side="right") - 1, 0, compute.size - 2)
    share = (ends - compute[left]) / (compute[left + 1] - compute[left])
    at_ends = np.zeros((compute.size, ends.size))  # height of the lines with one reading in turn at 1, the others at 0
    at_ends[left, np.arange(ends.size)] = 1 - share
    at_ends[left + 1, np.arange(ends.size)] = share
    return np.asarray(np.trapezoid(at_ends, ends, axis=1)) / (end - start)
