"""Interactions of a grid: how much the effect of one axis's value differs between two values of another axis.

    interaction of a and b = 1 / n sum_c ((mu_abc - mu_a0bc) - (mu_ab0c - mu_a0b0c))      over the n settings c of the
                                                                                          other axes, if there are any

with mu and the run-to-run spread as in `main_effects`; for compute it is the ratio of two ratios. Settings c at which
one of the four cells is missing are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from ablations.answers.answer import Answer, answers_json
from ablations.answers.main_effects import GridCell, contrast_answers
from ablations.answers.run_to_run import RunToRun
from ablations.fit.result import Fit


@dataclass(frozen=True, kw_only=True)
class GridInteraction:
    """Two values together: `GridInteraction(first=("loss.type", "dapo"), second=("batch.prompts", "32"),
    answers={"level": Answer(...), ...})`."""

    first: tuple[str, str]
    """An axis and its value."""
    second: tuple[str, str]
    answers: Mapping[str, Answer]
    """Answers by the name of their question."""

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, with the keys of the questions."""
        return {"first": list(self.first), "second": list(self.second)} | answers_json(self.answers)


def grid_interactions(
    cells: Mapping[GridCell, Sequence[Fit]],
    axes: Mapping[str, Sequence[str]],
    bases: Mapping[str, str],
    spreads: Mapping[str, RunToRun],
    compute: float | None = None,
) -> list[GridInteraction]:
    """The interaction of every two values of two axes, against the axes' bases; joint intervals hold for all at once.

    Arguments are those of `main_effects`.
    """
    wanted = []
    for (one, first), (two, second) in combinations(enumerate(axes), 2):
        for a, b in product(axes[first], axes[second]):
            if (
                a != bases[first]
                and b != bases[second]
                and (squares := _squares(cells, (one, bases[first], a), (two, bases[second], b)))
            ):
                wanted.append(((first, a), (second, b), squares))
    return [
        GridInteraction(
            first=first,
            second=second,
            answers=contrast_answers(
                [(sign / len(squares), cells[cell]) for square in squares for sign, cell in square],
                spreads,
                comparisons=len(wanted),
                compute=compute,
            ),
        )
        for first, second, squares in wanted
    ]


def _squares(
    cells: Mapping[GridCell, Sequence[Fit]], first: tuple[int, str, str], second: tuple[int, str, str]
) -> list[list[tuple[int, GridCell]]]:
    """The four cells with their signs, at every setting of the other axes that has all four; `first` is the place of an
    axis, its base and its value."""
    (one, a0, a), (two, b0, b) = first, second

    def with_values(cell: GridCell, at_one: str, at_two: str) -> GridCell:
        return tuple(at_one if place == one else at_two if place == two else value for place, value in enumerate(cell))

    signs = {(a, b): 1, (a0, b): -1, (a, b0): -1, (a0, b0): 1}
    both = [cell for cell in cells if (cell[one], cell[two]) == (a, b)]
    squares = [[(sign, with_values(cell, *values)) for values, sign in signs.items()] for cell in both]
    return [square for square in squares if all(cell in cells for _, cell in square)]
