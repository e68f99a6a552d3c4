"""An estimate with its 95 % interval."""

import math
from dataclasses import dataclass

import numpy as np

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
