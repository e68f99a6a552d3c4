"""An estimate with its 95 % interval, and with the wider one that holds for all comparisons of a study at once."""

import math
from dataclasses import dataclass

import numpy as np

TAIL = 0.025


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with its 95 % interval; an end that is None is not bounded.

    Interval(estimate=0.61, lo=0.59, hi=None)
    """

    estimate: float
    lo: float | None
    hi: float | None


@dataclass(frozen=True, kw_only=True)
class JointInterval(Interval):
    """The same with the ends that are corrected for several comparisons: all of them hold in 95 % of the studies.

    JointInterval(estimate=0.61, lo=0.59, hi=None, joint_lo=0.58, joint_hi=None)
    """

    joint_lo: float | None
    joint_hi: float | None
    is_shown: bool = True
    """False for an estimate that means nothing by itself, though an end may be known: of a ceiling without one."""

    @property
    def joint(self) -> Interval:
        """The corrected interval."""
        return Interval(estimate=self.estimate, lo=self.joint_lo, hi=self.joint_hi)


def interval_of(estimate: float, draws: np.ndarray, *, has_lo: bool = True, comparisons: int = 1) -> JointInterval:
    """The 95 % interval of draws, and the one corrected for so many comparisons; an end that is infinite or that
    nothing bounds is None.

    The correction is Bonferroni's, tails of 0.025 / m: m intervals of which each fails in 0.05 / m of the studies fail
    together in 0.05 at most, however they depend on each other. Dunnett's, which knows that all share the reference, is
    2 % narrower for eight normal differences, and not exact where the standard deviation between runs is uncertain.
    n draws know no tail under 1 / n: 2,000 of them do for forty comparisons.
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
