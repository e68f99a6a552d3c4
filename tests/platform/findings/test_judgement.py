"""What intervals say of claims, by hand, and how often cards are wrong where the truth is known."""

import math
from typing import Any

import pytest

from ablations.answers.answer import Answer
from ablations.answers.questions import CEILING, COMPUTE
from ablations.findings.claim_card import judged_claim
from ablations.study.claims import LEAST_RATIO, Claim


def claim(says: Any = "up", of: Any = "ceiling", by: float | None = 0.05):
    return Claim(variant="v", of=of, says=says, by=by, source="figure 0")


@pytest.mark.parametrize(
    ("says", "lo", "hi", "outcome"),
    [
        ("up", 0.01, 0.09, "holds"),
        ("up", 0.01, 0.04, "holds but smaller"),
        ("down", -0.04, -0.01, "holds but smaller"),
        ("up", -0.09, -0.01, "opposite"),
        ("up", -0.02, 0.04, "no difference of that size"),
        ("up", -0.02, 0.06, "cannot tell"),
        ("up", -0.02, None, "cannot tell"),
        ("down", -0.09, -0.01, "holds"),
        ("down", -0.04, 0.02, "no difference of that size"),
        ("down", None, 0.02, "cannot tell"),
        ("same", -0.04, 0.04, "holds"),
        ("same", 0.01, 0.04, "holds"),  # another ceiling, but by less than the margin
        ("same", -0.06, 0.04, "cannot tell"),
        ("same", 0.06, 0.09, "opposite"),
        ("same", -0.04, None, "cannot tell"),
    ],
)
def test_an_interval_decides_a_claim(says, lo, hi, outcome):
    assert judged_claim(claim(says), Answer.written(CEILING, estimate=0.0, lo=lo, hi=hi)) == outcome


def test_nothing_measured_tells_nothing():
    assert judged_claim(claim(), None) == "cannot tell"
    assert judged_claim(claim("same"), Answer.written(CEILING, estimate=None, lo=None, hi=None)) == "cannot tell"


def test_compute_is_judged_by_its_ratio():
    less = claim("down", of="compute", by=1.5)

    def judged(lo, hi):
        return judged_claim(less, Answer.written(COMPUTE, estimate=None, lo=lo, hi=hi))

    assert judged(0.6, 0.9) == "holds"
    assert judged(0.7, 0.9) == "holds but smaller"
    unsized = claim("down", of="compute", by=None)  # LEAST_RATIO counts, which is no published size
    assert judged_claim(unsized, Answer.written(COMPUTE, estimate=None, lo=0.95, hi=0.99)) == "holds"
    assert judged(0.7, 1.2) == "no difference of that size"
    assert judged(0.6, 1.2) == "cannot tell"
    assert claim("up", of="compute", by=None).size == pytest.approx(math.log(LEAST_RATIO))


def test_a_ratio_of_no_compute_at_all_has_no_lower_end():
    found = Answer.written(COMPUTE, estimate=0.0, lo=0.0, hi=0.5)
    assert COMPUTE.scaled(found.lo) == -math.inf
    assert judged_claim(claim("down", of="compute", by=1.5), found) == "holds"
