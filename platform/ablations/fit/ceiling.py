"""A averaged over the families that fit; eq. 1's own A is valid only if eq. 1 is the law.

`benchmarks/law_doubt.py` measures coverage under other laws, and the cost if eq. 1 is the law.
"""

from dataclasses import dataclass

import numpy as np

from ablations.fit.alternatives import Alternatives
from ablations.fit.ends import ends_around

MOST_OPEN = 0.025
"""Limit on the total weight of families that allow a ceiling of 1 while A counts as bounded: an interval's tail."""
EQ1_LEADS = 0.5
"""Minimum weight of eq. 1 for its own A to be the estimate; otherwise the estimate is the median over all families."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ceiling:
    """A over all families: Ceiling(estimate=0.612, lo=0.585, hi=0.641, draws=array([...])).

    `hi` is None if families that allow a ceiling of 1 weigh over MOST_OPEN.
    """

    estimate: float
    """Estimate of the ceiling, even if nothing bounds the ceiling from above and `Fit.A` is None."""
    lo: float
    hi: float | None
    draws: np.ndarray
    """Equally likely values of A, by family in the order of FAMILIES, so that draw i of two fits belongs to one family
    where their weights agree. Sorting or shuffling one fit's draws loses that."""

    def times(self, unit: float) -> "Ceiling":
        """Convert from units of `unit` to pass rates."""
        hi = None if self.hi is None else unit * self.hi
        return Ceiling(estimate=unit * self.estimate, lo=unit * self.lo, hi=hi, draws=unit * self.draws)


def averaged_ceiling(
    eq1_A: float, eq1_ends: tuple[float, float | None], eq1_draws: np.ndarray, found: Alternatives
) -> Ceiling:
    """The ceiling over all families, from eq. 1's estimate, interval and draws, and the other families' draws."""
    draws = eq1_draws.copy()
    for other in found.others:
        draws[other.rows] = other.ceilings
    eq1_lo, eq1_hi = eq1_ends
    A = eq1_A if found.eq1_weight >= EQ1_LEADS else float(np.median(draws))
    lo, hi = map(float, ends_around(A, draws))
    if eq1_hi is None:
        # A lone lower bound must not depend on the prior of B.
        lo = min(lo, eq1_lo)
    return Ceiling(estimate=A, lo=lo, hi=None if found.open_weight > MOST_OPEN else hi, draws=draws)
