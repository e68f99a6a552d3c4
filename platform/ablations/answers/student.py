"""Student's t: the distribution of an estimated difference, alone or as a mixture over laws.

(difference - estimate) / sqrt(variance) ~ t(freedom)                             under each law, with its weight
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import stdtr, stdtrit

from ablations.answers.interval import TAIL, JointInterval

LEAST_VARIANCE = 1e-18
QUANTILE_MARGIN = 1e-5
"""Share of a standard error by which the bracket of a quantile is widened, and below which two quantiles are equal."""


@dataclass(frozen=True, kw_only=True)
class Student:
    """A difference under one law: Student(estimate=-0.049, variance=0.0001, freedom=16.0, weight=0.8)."""

    estimate: float
    variance: float
    freedom: float
    """Degrees of freedom of `variance`."""
    weight: float = 1.0


def quantile(parts: Sequence[Student], share: float) -> float:
    """The quantile of a mixture of t distributions; the closed form if there is one part."""
    ends = [one.estimate + stdtrit(one.freedom, share) * math.sqrt(one.variance) for one in parts]
    lo, hi = float(min(ends)), float(max(ends))
    estimate, variance, freedom, weight = (
        np.array([getattr(one, name) for one in parts]) for name in ("estimate", "variance", "freedom", "weight")
    )
    sd = np.sqrt(np.maximum(variance, LEAST_VARIANCE))
    margin = QUANTILE_MARGIN * float(sd.max())  # stdtrit and stdtr do not invert each other to the last digit
    if hi - lo <= margin:
        return lo
    weight = weight / weight.sum()

    def excess(x: float) -> float:
        return float(weight @ stdtr(freedom, (x - estimate) / sd)) - share

    return float(root_scalar(excess, bracket=(lo - margin, hi + margin), method="brentq").root)


def mass_below(parts: Sequence[Student], x: float) -> float:
    """The probability that a mixture of t distributions has below x."""
    weights = sum(one.weight for one in parts)
    return sum(
        one.weight
        / weights
        * float(stdtr(one.freedom, (x - one.estimate) / math.sqrt(max(one.variance, LEAST_VARIANCE))))
        for one in parts
    )


def interval_of(parts: Sequence[Student], estimate: float, *, comparisons: int = 1) -> JointInterval:
    """The 95 % interval of a mixture, and the interval corrected for the number of `comparisons`. Both include the
    estimate, which may come from one law of little weight.

    The correction is Bonferroni's, with tails of 0.025 / m: m intervals that each fail in 0.05 / m of the studies fail
    together in 0.05 at most, for any dependence.
    """
    tails = (TAIL, 1 - TAIL, TAIL / comparisons, 1 - TAIL / comparisons)
    lo, hi, joint_lo, joint_hi = (quantile(parts, share) for share in tails)
    return JointInterval(
        estimate=estimate,
        lo=min(lo, estimate),
        hi=max(hi, estimate),
        joint_lo=min(joint_lo, estimate),
        joint_hi=max(joint_hi, estimate),
        p_lower=mass_below(parts, 0.0),
    )
