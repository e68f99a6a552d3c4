"""What an interval says: up, down, no difference seen, or cannot tell."""

import pytest

from ablations.answers.interval import Interval
from ablations.answers.paper_rule import paper_rule
from ablations.answers.questions import CEILING, COMPUTE, LEVEL


@pytest.mark.parametrize(
    ("lo", "hi", "said"),
    [
        (0.001, 0.5, "ceiling up"),
        (-0.5, -0.001, "ceiling down"),
        (-0.03, 0.04, "no difference seen"),
        (-0.05, 0.04, "cannot tell"),
        (0.001, None, "ceiling up"),
        (None, -0.001, "ceiling down"),
        (-0.001, None, "cannot tell"),
        (None, None, "cannot tell"),
    ],
)
def test_the_ceiling_rule_reads_the_interval_of_the_difference(lo, hi, said):
    assert CEILING.verdict(Interval(estimate=0.0, lo=lo, hi=hi)) == said


@pytest.mark.parametrize(
    ("lo", "hi", "said"),
    [
        (1.001, 9.0, "more compute"),
        (0.1, 0.999, "less compute"),
        (0.9, 1.35, "no difference seen"),
        (0.9, 1.36, "cannot tell"),
        (1.2, None, "more compute"),
        (None, 0.8, "less compute"),
        (0.9, None, "cannot tell"),
        (None, 1.1, "cannot tell"),
    ],
)
def test_the_efficiency_rule_reads_the_interval_of_the_ratio(lo, hi, said):
    assert COMPUTE.verdict(Interval(estimate=1.0, lo=lo, hi=hi)) == said


@pytest.mark.parametrize(
    ("delta", "said"), [(0.0201, "ceiling up"), (-0.0201, "ceiling down"), (0.0199, "no difference seen")]
)
def test_the_rule_of_the_paper_is_a_margin_of_two_hundredths(delta, said):
    assert paper_rule(delta) == said


@pytest.mark.parametrize(
    ("lo", "hi", "said"),
    [
        (0.001, 0.03, "level up"),
        (-0.03, -0.001, "level down"),
        (-0.02, 0.029, "no difference seen"),
        (-0.03, 0.021, "cannot tell"),
    ],
)
def test_the_level_rule_reads_the_interval_of_the_difference(lo, hi, said):
    assert LEVEL.verdict(Interval(estimate=0.0, lo=lo, hi=hi)) == said
