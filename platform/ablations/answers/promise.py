"""What a campaign promises of all its keeps together, and the level at which one proposal is tested to hold it.

at_most_one   at most one false keep in 95 % of campaigns of N proposals, whatever the proposals are worth. A proposal
              is tested at the level BEFORE / N while nothing is kept, AFTER / N from then on. With N proposals that
              equal the best and are judged independently, false keeps come at the rates a and b:

                  P(two or more) = 1 - e^-a - a e^-b (1 - e^-(a - b)) / (a - b)

              which is .043 for these two, and leaves room for a machine that drifts. It is control of the probability
              of two errors, k-FWER with k = 2 (Lehmann and Romano 2005, arXiv math/0507420), that spends more before
              the first keep.
fdr           of all keeps at most FDR are false, on average, for any number of proposals: LORD++ (Ramdas, Yang,
              Wainwright and Jordan 2017, arXiv 1710.00499), in which each keep earns level for later proposals:

                  level_t = g_t w + (FDR - w) g_(t - t1) + FDR sum_(j >= 2) g_(t - tj)

              with keeps at t1, t2, ..., w = FDR / 2, and g falling like ln(j) / (j e^sqrt(ln j)), with sum 1.
"""

import math
from collections.abc import Sequence
from typing import Literal

Promise = Literal["at_most_one", "fdr"]
BEFORE, AFTER = 0.92, 0.13
"""Expected false keeps of a campaign of equal proposals at the rate before the first keep, and at that after it."""
MOST_LEVEL = 0.02
"""Highest level of one proposal, however few there are."""
FDR = 0.1
LORD_SCALE = 0.0790
"""Factor by which the weights of LORD++ add up to 1; the form is of Javanmard and Montanari 2018, arXiv 1603.09000."""


def keep_level(promise: Promise, number: int, kept: Sequence[int], *, proposals: int) -> float:
    """The probability with which proposal `number`, from 1, may be kept although it is no better than the best.

    `kept` are the numbers of the proposals that have been kept so far.
    """
    if promise == "at_most_one":
        return min((AFTER if kept else BEFORE) / proposals, MOST_LEVEL)
    earlier = [one for one in kept if one < number]
    earned = [FDR / 2, *[FDR] * (len(earlier) - 1)] if earlier else []
    by_keeps = sum(share * lord_weight(number - one) for share, one in zip(earned, sorted(earlier), strict=True))
    return min(FDR / 2 * lord_weight(number) + by_keeps, MOST_LEVEL)


def lord_weight(place: int) -> float:
    """The weight of a place, from 1."""
    return LORD_SCALE * math.log(max(place, 2)) / (place * math.exp(math.sqrt(math.log(place))))
