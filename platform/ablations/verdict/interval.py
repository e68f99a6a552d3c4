"""An estimate with its 95 % interval: from draws, or by Welch's t."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

TAILS = (0.025, 0.975)


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with its 95 % interval; an end that is None is not bounded.

    Interval(estimate=0.61, lo=0.59, hi=None)
    """

    estimate: float
    lo: float | None
    hi: float | None


def interval_of(estimate: float, draws: np.ndarray, *, has_lo: bool = True) -> Interval:
    """The 95 % interval of draws; an end that is infinite or that nothing bounds is None."""
    lo, hi = np.quantile(draws, TAILS, method="closest_observation")
    return Interval(
        estimate=estimate,
        lo=float(lo) if has_lo and math.isfinite(lo) else None,
        hi=float(hi) if math.isfinite(hi) else None,
    )


def welch_interval(a: np.ndarray, b: np.ndarray) -> Interval:
    """Difference of means with unequal variances (Welch 1947): d +- t_nu sqrt(v_a + v_b), v = s^2 / n.

    nu = (v_a + v_b)^2 / (v_a^2 / (n_a - 1) + v_b^2 / (n_b - 1)). `scipy.stats.ttest_ind` gives the same,
    but NaN for equal seeds, and its import takes longer than all others of a comparison together.
    """
    difference = float(a.mean() - b.mean())
    v_a, v_b = a.var(ddof=1) / a.size, b.var(ddof=1) / b.size
    if v_a + v_b == 0:
        return Interval(estimate=difference, lo=difference, hi=difference)
    nu = (v_a + v_b) ** 2 / (v_a**2 / (a.size - 1) + v_b**2 / (b.size - 1))
    margin = float(stdtrit(nu, 0.975) * math.sqrt(v_a + v_b))
    return Interval(estimate=difference, lo=difference - margin, hi=difference + margin)
