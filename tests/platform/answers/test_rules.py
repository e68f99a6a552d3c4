"""What an interval says: up, down, no difference seen, or cannot tell."""

import pytest

from ablations.answers.interval import Interval
from ablations.answers.paper_rule import paper_rule
from ablations.answers.questions import CEILING, COMPUTE, LEVEL


@pytest.mark.parametrize(
    ("question", "lo", "hi", "said"),
    [
        (CEILING, 0.001, 0.5, "ceiling up"),
        (CEILING, -0.5, -0.001, "ceiling down"),
        (CEILING, -0.03, 0.04, "no difference seen"),
        (CEILING, -0.05, 0.04, "cannot tell"),
        (CEILING, 0.001, None, "ceiling up"),
        (CEILING, -0.001, None, "cannot tell"),
        (CEILING, None, None, "cannot tell"),
        (COMPUTE, 1.001, 9.0, "more compute"),
        (COMPUTE, 0.1, 0.999, "less compute"),
        (COMPUTE, 0.9, 1.35, "no difference seen"),
        (COMPUTE, 0.9, 1.36, "cannot tell"),
        (COMPUTE, None, 0.8, "less compute"),
        (COMPUTE, 0.9, None, "cannot tell"),
        (LEVEL, 0.001, 0.03, "level up"),
        (LEVEL, -0.03, -0.001, "level down"),
        (LEVEL, -0.02, 0.029, "no difference seen"),
        (LEVEL, -0.03, 0.021, "cannot tell"),
    ],
)
def test_a_verdict_reads_the_interval_of_the_difference_or_the_ratio(question, lo, hi, said):
    assert question.verdict(Interval(estimate=0.0, lo=lo, hi=hi)) == said


@pytest.mark.parametrize(
    ("delta", "said"), [(0.0201, "ceiling up"), (-0.0201, "ceiling down"), (0.0199, "no difference seen")]
)
def test_the_rule_of_the_paper_is_a_margin_of_two_hundredths(delta, said):
    assert paper_rule(delta) == said
