"""What intervals say of claims, by hand, and how often cards are wrong where the truth is known."""

import math
from typing import Any

import pytest

from ablations.paper.judgement import MeasuredDifference, difference_in, judged_claim
from ablations.study.claims import LEAST_RATIO, Claim
from ablations.verdict.compare import VariantResult


def claim(says: Any = "up", of: Any = "ceiling", by: float | None = 0.05):
    return Claim(variant="v", of=of, says=says, by=by, source="figure 0")


@pytest.mark.parametrize(
    ("says", "lo", "hi", "outcome"),
    [
        ("up", 0.01, 0.09, "holds"),
        ("up", 0.01, None, "holds"),
        ("up", 0.01, 0.04, "holds"),  # smaller than published, but there
        ("up", -0.09, -0.01, "opposite"),
        ("up", None, -0.01, "opposite"),
        ("up", -0.02, 0.04, "no difference of that size"),
        ("up", -0.02, 0.06, "cannot tell"),
        ("up", -0.02, None, "cannot tell"),
        ("up", None, 0.04, "no difference of that size"),
        ("down", -0.09, -0.01, "holds"),
        ("down", 0.01, 0.09, "opposite"),
        ("down", -0.04, 0.02, "no difference of that size"),
        ("down", -0.06, 0.02, "cannot tell"),
        ("down", None, 0.02, "cannot tell"),
        ("same", -0.04, 0.04, "holds"),
        ("same", 0.01, 0.04, "holds"),  # another ceiling, but by less than the margin
        ("same", -0.06, 0.04, "cannot tell"),
        ("same", 0.01, 0.09, "cannot tell"),
        ("same", 0.06, 0.09, "opposite"),
        ("same", None, -0.06, "opposite"),
        ("same", -0.04, None, "cannot tell"),
    ],
)
def test_an_interval_decides_a_claim(says, lo, hi, outcome):
    assert judged_claim(claim(says), MeasuredDifference(estimate=0.0, lo=lo, hi=hi)) == outcome


def test_nothing_measured_tells_nothing():
    assert judged_claim(claim(), None) == "cannot tell"


def test_compute_is_judged_by_its_ratio():
    less = claim("down", of="compute", by=1.5)

    def judged(lo, hi):
        return judged_claim(less, MeasuredDifference(estimate=None, lo=math.log(lo), hi=math.log(hi)))

    assert judged(0.6, 0.9) == "holds"
    assert judged(0.7, 1.2) == "no difference of that size"
    assert judged(0.6, 1.2) == "cannot tell"
    assert claim("up", of="compute", by=None).size == pytest.approx(math.log(LEAST_RATIO))


def line(**numbers) -> VariantResult:
    """A line of a comparison of which nothing else is known."""
    empty: dict[str, Any] = dict.fromkeys(VariantResult.__dataclass_fields__)
    return VariantResult(**empty | numbers)


def test_a_difference_is_read_off_the_line_of_a_comparison():
    level = {"delta_level": 0.03, "delta_level_lo": 0.01, "delta_level_hi": 0.05}
    found = line(**level, delta_A_lo=0.01, compute_ratio=2.0, compute_ratio_lo=1.0)
    assert difference_in(found, "level") == MeasuredDifference(estimate=0.03, lo=0.01, hi=0.05)
    assert difference_in(found, "ceiling") == MeasuredDifference(estimate=None, lo=0.01, hi=None)
    assert difference_in(found, "compute") == MeasuredDifference(estimate=math.log(2), lo=0.0, hi=None)


def test_compute_that_nothing_was_measured_of_gives_no_difference():
    assert difference_in(line(), "compute") is None


def test_a_ratio_of_no_compute_at_all_has_no_lower_end():
    found = difference_in(line(compute_ratio=0.0, compute_ratio_lo=0.0, compute_ratio_hi=0.5), "compute")
    assert found is not None
    assert found.lo == -math.inf
    assert judged_claim(claim("down", of="compute", by=1.5), found) == "holds"
