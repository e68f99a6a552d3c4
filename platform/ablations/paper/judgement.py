"""What an interval says of a claim: it holds, its opposite does, no difference is that large, or nobody can tell.

A claim "up by d" of a difference whose 95 % interval is [lo, hi]:

    holds                          lo > 0: the sign is the claimed one
    opposite                       hi < 0
    no difference of that size     otherwise, where hi < d
    cannot tell                    otherwise

A claim "the same within d" holds where -d < lo and hi < d, is opposite where lo > d or hi < -d, and else cannot be
told. So each wrong verdict needs an interval that misses the truth. Ratios of compute are taken as logarithms.
"""

import math
from dataclasses import dataclass
from typing import Literal

from ablations.study.claims import Claim, Quantity
from ablations.verdict.compare import VariantResult

ClaimOutcome = Literal["holds", "opposite", "no difference of that size", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class MeasuredDifference:
    """A difference as far as it is known; None where nothing bounds it.

    MeasuredDifference(estimate=0.03, lo=0.01, hi=0.05)
    """

    estimate: float | None
    lo: float | None
    hi: float | None


def judged_claim(claim: Claim, found: MeasuredDifference | None) -> ClaimOutcome:
    """The outcome of a claim; `found` is the difference in pass rate or in ln compute, None where there is none.

    >>> claim = Claim(variant="fp32", of="ceiling", says="up", by=0.09, source="figure 5b")
    >>> judged_claim(claim, MeasuredDifference(estimate=0.03, lo=-0.01, hi=0.06))
    'no difference of that size'
    """
    if found is None:
        return "cannot tell"
    lo, hi = (-math.inf if found.lo is None else found.lo), (math.inf if found.hi is None else found.hi)
    if claim.says == "same":
        return _judged_same(claim.size, lo, hi)
    if claim.says == "down":
        lo, hi = -hi, -lo
    if lo > 0:
        return "holds"
    if hi < 0:
        return "opposite"
    return "no difference of that size" if hi < claim.size else "cannot tell"


def _judged_same(margin: float, lo: float, hi: float) -> ClaimOutcome:
    if -margin < lo and hi < margin:
        return "holds"
    return "opposite" if lo > margin or hi < -margin else "cannot tell"


def difference_in(line: VariantResult, of: Quantity) -> MeasuredDifference | None:
    """The difference that a line of a comparison has of a quantity, ln for compute; None where it has none."""
    match of:
        case "level":
            numbers = (line.delta_level, line.delta_level_lo, line.delta_level_hi)
        case "ceiling":
            numbers = (line.delta_A, line.delta_A_lo, line.delta_A_hi)
        case "compute":
            ratio = (line.compute_ratio, line.compute_ratio_lo, line.compute_ratio_hi)
            numbers = tuple(None if number is None else _log(number) for number in ratio)
    estimate, lo, hi = numbers
    if estimate is None and lo is None and hi is None:
        return None
    return MeasuredDifference(estimate=estimate, lo=lo, hi=hi)


def _log(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else -math.inf
