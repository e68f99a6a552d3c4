"""The grid of a comparison as blocks: a table of cells per question, the main effects of the axes, and pairs of
changes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from ablations.answers.answer import Answer, Question
from ablations.findings.grid import Grid
from ablations.findings.results import Results
from ablations.report.documents.blocks import Blocks, Cell, Column, Heading, Table, Text, cells
from ablations.report.documents.marks import HELD_MARK, REFERENCE_MARK, limits_said
from ablations.report.documents.variant_row import VariantRow, answer_cell

EFFECTS_NOTE = (
    "Main effect: the mean difference between two values of an axis over the other axes, with the run-to-run spread "
    "of the verdicts; for compute, the mean ratio."
)
INTERACTIONS_NOTE = (
    "Two changes together: their difference from the reference beyond the sum of both; for compute, the ratio "
    "beyond the product."
)
HEAT_NOTE = (
    "Blue is better than the reference, orange worse; a stronger colour is a larger difference, a pale one is "
    "undecided."
)


def grid_blocks(results: Results) -> Blocks:
    """A section with the cells, the main effects and the pairs of changes, and notes on their marks and colours; empty
    if no two axes are crossed and no two changes are made together."""
    if not (tables := [*cell_tables(results), *effect_tables(results)]):
        return []
    marks = (
        f"{HELD_MARK} also differs with intervals corrected for all comparisons, = shows no difference (at most "
        f"{limits_said(results.questions)}), ? cannot tell"
    )
    said = filter(None, (reference_values(results), f"Marks: {marks}.", *effect_notes(results), HEAT_NOTE))
    heading = "The grid" if results.grid else "Two changes together"
    return [Heading(text=heading), *tables, Text(text=" ".join(said), kind="note")]


def cell_tables(results: Results) -> list[Table]:
    """A table for each question with an answer; columns are the values of the shortest axis."""
    if (grid := results.grid) is None:
        return []
    across = min(grid.axes, key=lambda axis: len(grid.axes[axis]))
    down = [axis for axis in grid.axes if axis != across]
    places = [dict(zip(down, values, strict=True)) for values in product(*(grid.axes[axis] for axis in down))]
    found = []
    for question in results.questions:
        variants = [
            [_variant(results, grid, {**place, across: value}) for value in grid.axes[across]] for place in places
        ]
        answers = [[one and one.answer(question) for one in row] for row in variants]
        if any(one is not None and (one.lo, one.hi) != (None, None) for row in answers for one in row):
            names = [", ".join(_value(grid, axis, value) for axis, value in place.items()) for place in places]
            shown = [["" if one is None else one.marked(question) for one in row] for row in variants]
            found.append(
                Table(
                    name=f"grid-{question.name}",
                    title=f"{results.heading(question)}, by {', '.join(down)} (down) and {across} (across)",
                    columns=_columns(", ".join(down), [_value(grid, across, one) for one in grid.axes[across]]),
                    rows=tuple(cells(name, *row) for name, row in zip(names, _heated(shown, answers), strict=True)),
                )
            )
    return found


def effect_tables(results: Results) -> list[Table]:
    """A line per main effect of a grid, and a line per pair of changes that ends with their interaction in words."""
    found = []
    if (grid := results.grid) is not None:
        twice = Counter(effect.value for effect in grid.effects)
        effects = {
            effect.value if twice[effect.value] == 1 else f"{effect.axis} {effect.value}": effect.answers
            for effect in grid.effects
        }
        against = ", ".join(f"{axis} {value}" for axis, value in grid.bases.items())
        found.append(_effects(results, "main-effects", f"main effects, against {against}", "value", effects))
    if results.interactions:
        pairs = {f"{one.first} with {one.second}": one.answers for one in results.interactions}
        table = _effects(results, "interactions", "two changes together, beyond their sum", "pair", pairs)
        said = [one.said for one in results.interactions]
        rows = tuple((*row, Cell(text)) for row, text in zip(table.rows, said, strict=True))
        found.append(replace(table, columns=(*table.columns, Column(heading="the two", kind="words")), rows=rows))
    return found


def effect_notes(results: Results) -> list[str]:
    """The meaning of the numbers in the tables of effects."""
    return [*([EFFECTS_NOTE] if results.grid else []), *([INTERACTIONS_NOTE] if results.interactions else [])]


def reference_values(results: Results) -> str:
    """Note below the tables on the mark of the reference's own values; empty if there are none."""
    own: Sequence[str] = [f"{axis} {value}" for axis, value in results.grid.own.items()] if results.grid else ()
    return f"{REFERENCE_MARK} {results.plan.reference}'s own value: {', '.join(own)}." if own else ""


def _effects(results: Results, name: str, title: str, first: str, lines: Mapping[str, Mapping[str, Answer]]) -> Table:
    """A line per name, with a column for each question that one of the lines answers."""
    questions = [
        one.name for one in results.questions if any(line[one.name].estimate is not None for line in lines.values())
    ]
    answers = [[line[question] for question in questions] for line in lines.values()]
    shown = [[answer_cell(one, is_joint=len(lines) > 1) for one in row] for row in answers]
    rows = tuple(cells(named, *row) for named, row in zip(lines, _heated(shown, answers), strict=True))
    return Table(name=name, title=title, columns=_columns(first, questions), rows=rows)


def _columns(first: str, others: Sequence[str]) -> tuple[Column, ...]:
    return (Column(heading=first), *(Column(heading=one, kind="number") for one in others))


def _value(grid: Grid, axis: str, value: str) -> str:
    """A value of an axis, marked if it is the reference's own."""
    return f"{value}{REFERENCE_MARK * (grid.own.get(axis) == value)}"


def _variant(results: Results, grid: Grid, values: Mapping[str, str]) -> VariantRow | None:
    name = grid.cells.get(tuple(values[axis] for axis in grid.axes))
    return None if name is None else VariantRow(results=results, variant=results.variant(name))


def _heated(
    shown: Sequence[Sequence[Cell | str]], answers: Sequence[Sequence[Answer | None]]
) -> list[list[Cell | str]]:
    """The cells, with their difference relative to the largest of its question in the table."""
    largest: dict[Question, float] = {}
    for one in (one for row in answers for one in row if one is not None):
        largest[one.question] = max(largest.get(one.question, 0.0), abs(_gain(one)))
    return [
        [
            cell if one is None or isinstance(cell, str) or not _gain(one)
            else replace(cell, heat=_gain(one) / largest[one.question])
            for cell, one in zip(cells_of_row, of_row, strict=True)
        ]
        for cells_of_row, of_row in zip(shown, answers, strict=True)
    ]  # fmt: skip


def _gain(answer: Answer) -> float:
    """Advantage over the reference, in the unit of the question's intervals; 0 if unknown."""
    size = answer.question.scaled(answer.estimate) or 0.0
    return -size if answer.question.lower_is_better else size
