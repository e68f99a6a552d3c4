"""An estimate with its 95 % interval, and the wider joint interval over all comparisons of a study."""

import math
from dataclasses import dataclass, field, replace

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
    """False for an estimate that is meaningless by itself, though an end may be known: a ceiling without an upper
    end."""
    is_provisional: bool = False
    """True if there is one seed and the run-to-run spread is unknown, so that there is no interval."""
    p_lower: float | None = field(default=None, compare=False)
    """Probability, by the distribution that the interval is from, of a number below "no difference"; None if
    unknown."""

    @property
    def joint(self) -> Interval:
        """The corrected interval."""
        return Interval(estimate=self.estimate, lo=self.joint_lo, hi=self.joint_hi)


def only_estimate(estimate: float, *, num_seeds: int, is_shown: bool = True) -> JointInterval:
    """An estimate whose run-to-run spread is unknown, without an interval; provisional if either side has one seed."""
    ends = {"lo": None, "hi": None, "joint_lo": None, "joint_hi": None}
    return JointInterval(estimate=estimate, **ends, is_shown=is_shown, is_provisional=num_seeds == 1)


def ratio_of_logs(found: JointInterval) -> JointInterval:
    """The interval of a ratio from that of its logarithm; a missing end stays missing."""
    names = ("estimate", "lo", "hi", "joint_lo", "joint_hi")
    numbers = {name: getattr(found, name) for name in names}
    return replace(found, **{name: None if one is None else math.exp(one) for name, one in numbers.items()})
