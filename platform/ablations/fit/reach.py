"""Whether compute counts from the start of training, as eq. 1 needs it: a run that went on from another starts late.

Far from 0 eq. 1 hardly bends: between 1,000,000 and 1,100,000 it rises by at most 14 % of its gain. A fit of readings
that do more takes their rise for noise and may call them flat. If eq. 1 misses the readings of a curve that starts far
from 0, and follows them from the curve's first reading on, the likely cause is said in place of a fit.
"""

import numpy as np
from scipy.special import fdtri

from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.engine.family import SIGMOID
from ablations.fit.engine.noise import LEAST_SD
from ablations.fit.engine.projection import Prior, solve

LATE = 4.0
"""A curve starts late if its last compute is at most this many times its first: six readings at equal distances from
the start of training have 6."""
BEFORE_FIRST = 1e-3
"""Of the distance between two readings: how long before the first of the curve training is tried to have started."""
SURE = 0.999
"""Of the F distribution, by which the squares of one origin must exceed those of the other."""


def starts_late(first: float, last: float) -> bool:
    """Whether a curve with these computes starts far from 0."""
    return last <= LATE * first


def refuse_a_late_start(curve: Curve, compute: np.ndarray, score: np.ndarray) -> None:
    """AblationsError if eq. 1 follows the readings of a window only when compute counts from the curve's first."""
    first = float(curve.compute[0])
    if not starts_late(first, float(compute[-1])):
        return
    from_first = compute - first + BEFORE_FIRST * (compute[1] - compute[0])
    freedom = score.size - SIGMOID.num_parameters
    missed, left = (_squares(origin, score) / freedom for origin in (compute, from_first))
    if missed > fdtri(freedom, freedom, SURE) * max(left, LEAST_SD**2):
        raise AblationsError(
            f"curve {curve.name!r}: its compute starts at {first:,.10g} and ends at {compute[-1]:,.10g}; eq. 1 misses "
            f"its readings by {missed**0.5:.2g} each, and by {left**0.5:.2g} if compute counts from the first: let it "
            "count from the start of training, and subtract what it was then"
        )


def _squares(compute: np.ndarray, score: np.ndarray) -> float:
    residuals = solve(SIGMOID, np.log(compute / compute[-1]), score, variance=1.0, prior=Prior()).residuals
    return float(residuals @ residuals)
