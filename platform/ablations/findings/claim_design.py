"""The cheapest design that decides every claim of a study, if the effects are as large as published."""

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import ndtri

from ablations.answers.half_widths import POWER, Sight
from ablations.findings.cheapest_design import Foreseen, Prospect
from ablations.study.claims import Claim

ROOM_OF_SAME = 1.0 + float(ndtri((1 + POWER) / 2) / ndtri(0.975))
"""Ratio of margin to half-width h that "the same" needs, 1.65: the estimate of equal variants scatters with h / 1.96,
and lies
within margin - h of 0 with a probability of POWER."""


@dataclass(frozen=True, kw_only=True)
class ClaimDesign:
    """The design to train, and the claims that it would leave undecided."""

    foreseen: Foreseen
    unseen: tuple[Claim, ...]


def design_for(prospect: Prospect, claims: Sequence[Claim]) -> ClaimDesign:
    """The cheapest design with the file's own samples that decides every claim; the file's own design if none does.

    The search covers other seeds and budgets, but not other numbers of samples, which would make new runs.
    """
    own = prospect.own
    for one in prospect.advisable:
        if one.choice.samples == own.choice.samples and not _unseen(one, claims):
            return ClaimDesign(foreseen=one, unseen=())
    return ClaimDesign(foreseen=own, unseen=_unseen(own, claims))


def _unseen(one: Foreseen, claims: Sequence[Claim]) -> tuple[Claim, ...]:
    return tuple(claim for claim in claims if not would_decide(one.sights[claim.of], claim))


def would_decide(sight: Sight, claim: Claim) -> bool:
    """True if the claim would be decided with a probability of POWER: a difference of the claimed size is seen, or for
    "the same" the interval of two equal variants lies within the margin.
    """
    if claim.says != "same":
        return sight.sees(claim.size)
    return sight.half_width is not None and sight.half_width * ROOM_OF_SAME <= claim.size
