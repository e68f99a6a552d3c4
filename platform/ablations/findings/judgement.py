"""The outcome of a claim, given an interval: holds, holds but smaller, opposite, no difference of that size, or cannot
tell.

A claim "up by d" about a difference with the 95 % interval [lo, hi]:

    holds                          lo > 0: the sign is the claimed one
    holds but smaller              also hi < d, if the claim states d
    opposite                       hi < 0
    no difference of that size     otherwise, if hi < d
    cannot tell                    otherwise

A claim "the same within d" holds if -d < lo and hi < d, is opposite if lo > d or hi < -d, and otherwise stays
undecided. So each wrong verdict needs an interval that misses the truth. Ratios of compute are taken as logarithms.

A claim "carries", "fades" or "flips" holds if that is the word over scales (`ablations.answers.ladder`), is opposite if
it is another of them, and otherwise stays undecided.
"""

import math
from typing import Literal

from ablations.answers.answer import CANNOT_TELL, Answer
from ablations.answers.ladder import LadderWord
from ablations.study.claims import Claim

ClaimOutcome = Literal["holds", "holds but smaller", "opposite", "no difference of that size", "cannot tell"]


def judged_claim(claim: Claim, answer: Answer | None) -> ClaimOutcome:
    """The outcome of a claim, given the answer to its question; None if the variant is not compared.

    The claim `ceiling up by 0.09` with the interval [-0.01, 0.06] gives "no difference of that size".
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
        return "holds but smaller" if claim.by is not None and hi < claim.size else "holds"
    if hi < 0:
        return "opposite"
    return "no difference of that size" if hi < claim.size else "cannot tell"


def judged_over_scales(claim: Claim, word: LadderWord | None) -> ClaimOutcome:
    """The outcome of a claim over scales, given the word there; None if there is only one scale."""
    if word is None or word == CANNOT_TELL:
        return "cannot tell"
    return "holds" if word == claim.says else "opposite"


def _judged_same(margin: float, lo: float, hi: float) -> ClaimOutcome:
    if -margin < lo and hi < margin:
        return "holds"
    return "opposite" if lo > margin or hi < -margin else "cannot tell"
