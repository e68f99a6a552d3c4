"""An estimate with its 95 % interval, and the wider joint interval over all comparisons of a study."""

import math
from dataclasses import dataclass

import numpy as np

TAIL = 0.025


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with its 95 % interval; an end of None is unbounded.

    Interval(estimate=0.61, lo=0.59, hi=None)
    """

    estimate: float
    lo: float | None
    hi: float | None


@dataclass(frozen=True, kw_only=True)
class JointInterval(Interval):
    """An interval with additional ends corrected for several comparisons: all of them hold at once in 95 % of the
    studies.

    JointInterval(estimate=0.61, lo=0.59, hi=None, joint_lo=0.58, joint_hi=None)
    """

    joint_lo: float | None
    joint_hi: float | None
    is_shown: bool = True
    """False for an estimate without meaning by itself, though an end may be known: a ceiling without an upper end."""

    @property
    def joint(self) -> Interval:
        """The corrected interval."""
        return Interval(estimate=self.estimate, lo=self.joint_lo, hi=self.joint_hi)


def interval_of(estimate: float, draws: np.ndarray, *, has_lo: bool = True, comparisons: int = 1) -> JointInterval:
    """The 95 % interval of draws, and the interval corrected for the number of `comparisons`; an infinite or unbounded
    end is None.

    The correction is Bonferroni's, with tails of 0.025 / m: m intervals that each fail in 0.05 / m of the studies fail
    together in 0.05 at most, whatever their dependence. Dunnett's, which uses the shared reference, is 2 % narrower for
    eight normal differences, and not exact with an uncertain run-to-run standard deviation. n draws resolve no tail
    below 1 / n; 2,000 draws suffice for forty comparisons.
    """
    tails = (TAIL, 1 - TAIL, TAIL / comparisons, 1 - TAIL / comparisons)
    lo, hi, joint_lo, joint_hi = (float(end) for end in np.quantile(draws, tails, method="closest_observation"))
    return JointInterval(
        estimate=estimate,
        lo=lo if has_lo and math.isfinite(lo) else None,
        hi=hi if math.isfinite(hi) else None,
        joint_lo=joint_lo if has_lo and math.isfinite(joint_lo) else None,
        joint_hi=joint_hi if math.isfinite(joint_hi) else None,
    )
