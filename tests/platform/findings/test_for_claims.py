"""The design that a study of the paper is trained with."""

from typing import Any

import pytest

from ablations.answers.half_widths import BLIND, Sight
from ablations.findings.cheapest_design import Foreseen, Prospect
from ablations.findings.claim_design import design_for, would_decide
from ablations.findings.design_options import Blueprint, Costs, StudyDesign
from ablations.study.claims import Claim

CLAIM = Claim(variant="v", of="ceiling", says="up", by=0.05, source="s")


def foreseen(seen: float, cost: float, *, samples: int = 8) -> Foreseen:
    """A design that sees a ceiling move by `seen`, and nothing of levels and compute."""
    return Foreseen(
        choice=StudyDesign(seeds=(0, 1), budget=cost, samples=samples),
        costs=Costs(whole=cost, left=cost, num_runs=1, left_share=1.0),
        seconds=None,
        num_readings=20,
        sights={"level": BLIND, "ceiling": Sight(half_width=seen, seen=seen), "compute": BLIND},
    )


def prospect(*designs: Foreseen) -> Prospect:
    """The file's own first; what they rest on is not asked for."""
    nothing: Any = None
    blueprint = Blueprint(study=nothing, home=nothing, budget=1.0)
    return Prospect(blueprint=blueprint, known=nothing, designs=designs)


def test_the_cheapest_design_that_sees_every_claim_is_taken():
    own, cheap, other_runs, dear = foreseen(0.08, 2), foreseen(0.1, 1), foreseen(0.02, 3, samples=32), foreseen(0.04, 4)
    found = design_for(prospect(own, cheap, other_runs, dear), [CLAIM])
    assert (found.foreseen, found.unseen) == (dear, ())


def test_where_none_sees_all_claims_the_file_is_kept_and_the_claims_are_named():
    own, of_level = foreseen(0.04, 2), Claim(variant="v", of="level", says="up", source="s")
    found = design_for(prospect(own, foreseen(0.1, 1)), [CLAIM, of_level])
    assert (found.foreseen, found.unseen) == (own, (of_level,))


@pytest.mark.parametrize(("half_width", "is_decided"), [(0.012, True), (0.0125, False), (0.03, False), (None, False)])
def test_that_two_are_the_same_is_seen_by_an_interval_with_room_in_the_margin(half_width, is_decided):
    same = Claim(variant="v", of="ceiling", says="same", by=0.02, source="s")
    assert would_decide(Sight(half_width=half_width, seen=0.001), same) == is_decided
