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
from typing import Literal

from ablations.answers.answer import Answer
from ablations.study.claims import Claim

ClaimOutcome = Literal["holds", "opposite", "no difference of that size", "cannot tell"]


def judged_claim(claim: Claim, answer: Answer | None) -> ClaimOutcome:
    """The outcome of a claim, given the answer to what it is `of`; None if the variant is not compared.

    A claim `ceiling up by 0.09` of which the interval is [-0.01, 0.06]: "no difference of that size".
    """
    if answer is None:
        return "cannot tell"
    ends = answer.question.scaled(answer.lo), answer.question.scaled(answer.hi)
    lo, hi = (-math.inf if ends[0] is None else ends[0]), (math.inf if ends[1] is None else ends[1])
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
