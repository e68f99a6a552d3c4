"""Colours that make heat maps of the tables of a grid: blue is better than the reference, orange worse.

The strength of a colour is in proportion to the difference, relative to the largest of its question in the table; an
undecided difference is pale. Compute is measured by the logarithm of its ratio.
"""

from collections.abc import Sequence

from ablations.answers.answer import Answer
from ablations.report.colours import BLUE, ORANGE, Style

DECIDED, UNDECIDED = 0.5, 0.12
"""Opacity of the largest difference. Text in the page's own colour stays readable on both."""


def heat_colours(answers: Sequence[Sequence[Answer | None]]) -> tuple[tuple[str, ...], ...]:
    """A colour in CSS for each cell; empty for a cell without a number."""
    largest: dict[str, float] = {}
    for answer in (one for row in answers for one in row if one is not None):
        largest[answer.question.name] = max(largest.get(answer.question.name, 0.0), abs(_gain(answer)))
    return tuple(
        tuple("" if one is None else _colour(one, largest[one.question.name]) for one in row) for row in answers
    )


def _gain(answer: Answer) -> float:
    """Advantage over the reference, in the unit of the question's intervals; 0 if unknown."""
    size = answer.question.scaled(answer.estimate) or 0.0
    return -size if answer.question.lower_is_better else size


def _colour(answer: Answer, largest: float) -> str:
    gain = _gain(answer)
    if gain == 0:
        return ""
    is_decided = answer.verdict in (answer.question.higher, answer.question.lower)
    opacity = abs(gain) / largest * (DECIDED if is_decided else UNDECIDED)
    return Style(colour=BLUE if gain > 0 else ORANGE, symbol="").tint(round(opacity, 3))
