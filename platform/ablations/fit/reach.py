"""Checks that compute counts from the start of training, as eq. 1 needs; a continued run may start late.

Far from 0 eq. 1 hardly bends: between 1,000,000 and 1,100,000 it rises by at most 14 % of its gain. A fit of readings
that rise more takes the rise for noise and may call them flat. If eq. 1 misses the readings of a curve that starts far
from 0, but follows them when compute counts from the first reading, an error reports the likely cause.
"""

import numpy as np
from scipy.special import fdtri

from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.engine.family import SIGMOID
from ablations.fit.engine.noise import LEAST_SD
from ablations.fit.engine.projection import Prior, solve

LATE = 4.0
"""A curve starts late if its last compute is at most this many times its first; six equally spaced readings from the
start of training have a ratio of 6."""
BEFORE_FIRST = 1e-3
"""Trial start of training before the first reading, as a fraction of the distance between two readings."""
SURE = 0.999
"""Quantile of the F distribution that the ratio of squares between the two origins must exceed."""


def starts_late(first: float, last: float) -> bool:
    """True if a curve with these ends starts far from compute 0."""
    return last <= LATE * first


def refuse_a_late_start(curve: Curve, compute: np.ndarray, score: np.ndarray) -> None:
    """Raise AblationsError if eq. 1 follows the readings only when compute counts from the curve's first."""
    first = float(curve.compute[0])
    if not starts_late(first, float(compute[-1])):
        return
    from_first = compute - first + BEFORE_FIRST * (compute[1] - compute[0])
    freedom = score.size - SIGMOID.num_parameters
    missed, left = (_squares(origin, score) / freedom for origin in (compute, from_first))
    if missed > fdtri(freedom, freedom, SURE) * max(left, LEAST_SD**2):
        raise AblationsError(
            f"curve {curve.name!r}: compute runs from {first:,.10g} to {compute[-1]:,.10g}; eq. 1 misses its "
            f"evaluations by {missed**0.5:.2g} each, but only by {left**0.5:.2g} if compute counts from the first; "
            "subtract from compute its value at the start of training"
        )


def _squares(compute: np.ndarray, score: np.ndarray) -> float:
    residuals = solve(SIGMOID, np.log(compute / compute[-1]), score, variance=1.0, prior=Prior()).residuals
    return float(residuals @ residuals)
