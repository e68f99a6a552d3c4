"""Main effects of a grid: the effect of one value of an axis instead of another, averaged over the other axes.

    effect of a against a0 = 1 / n sum_b (mu_ab - mu_a0b)          over the n settings b of the other axes

mu is the mean of a cell's seeds: its level, its ceiling, or the ln of its compute to a target that all cells of the
grid reach, whose effect is a ratio. Each of the 2 n cells has weight 1 / n or -1 / n in a contrast whose variance comes
from the same run-to-run spread as the verdicts (`RunToRun.of_contrast`), so an effect over n settings is about sqrt(n)
times as sure as one difference of cells. A ceiling's effect is taken under each law, like a difference of ceilings.
Settings b at which a cell is missing are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablations.answers.answer import Answer, Side, answers_json
from ablations.answers.questions import QUESTIONS, asked_at
from ablations.answers.run_to_run import RunToRun
from ablations.fit.result import Fit

GridCell = tuple[str, ...]
"""The value of a cell on each axis."""


@dataclass(frozen=True, kw_only=True)
class MainEffect:
    """One value of an axis against another: `MainEffect(axis="loss.type", value="dapo", against="cispo", num_pairs=3,
    answers={"level": Answer(...), ...})`.
    """

    axis: str
    value: str
    against: str
    num_pairs: int
    """Number of settings of the other axes over which the effect is averaged."""
    answers: Mapping[str, Answer]
    """Answers by the name of their question."""

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, with the keys of the questions."""
        head = {"axis": self.axis, "value": self.value, "against": self.against, "pairs": self.num_pairs}
        return head | answers_json(self.answers)


def main_effects(
    cells: Mapping[GridCell, Sequence[Fit]],
    axes: Mapping[str, Sequence[str]],
    bases: Mapping[str, str],
    spreads: Mapping[str, RunToRun],
    compute: float | None = None,
) -> list[MainEffect]:
    """The effect of every value of every axis against the axis's base; joint intervals hold for all effects at once.

    `axes` are the values by axis, in the order of the values of a cell. A value without any pair of cells is left out.
    `compute` is that of the comparison, to which the runs of all cells have come; by default it is found from them.
    """
    wanted = []
    for place, (axis, values) in enumerate(axes.items()):
        for value in (one for one in values if one != bases[axis]):
            pairs = [
                (cell, other)
                for cell in cells
                if cell[place] == value and (other := (*cell[:place], bases[axis], *cell[place + 1 :])) in cells
            ]
            wanted += [(axis, value, pairs)] if pairs else []
    return [
        MainEffect(
            axis=axis,
            value=value,
            against=bases[axis],
            num_pairs=len(pairs),
            answers=contrast_answers(_sides(pairs, cells), spreads, comparisons=len(wanted), compute=compute),
        )
        for axis, value, pairs in wanted
    ]


def _sides(pairs: Sequence[tuple[GridCell, GridCell]], cells: Mapping[GridCell, Sequence[Fit]]) -> list[Side]:
    """The mean difference over the pairs as a contrast."""
    return [(sign / len(pairs), cells[cell]) for pair in pairs for sign, cell in zip((1, -1), pair, strict=True)]


def contrast_answers(
    sides: Sequence[Side], spreads: Mapping[str, RunToRun], *, comparisons: int, compute: float | None = None
) -> dict[str, Answer]:
    """The answer of a contrast to each question, by name; joint intervals hold for as many `comparisons` at once."""
    return {
        one.name: Answer.of(one, asked_at(one, compute).contrast(sides, spreads[one.name], comparisons))
        for one in QUESTIONS
    }
