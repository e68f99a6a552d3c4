"""The grid of a comparison as blocks: a table of cells per question, the main effects of the axes, and pairs of
changes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from ablations.answers.answer import NO_DIFFERENCE, Answer, Question
from ablations.answers.questions import LEVEL
from ablations.findings.grid import Grid
from ablations.findings.results import Results
from ablations.report.documents.blocks import Blocks, Cell, Column, Heading, Table, Text, cells
from ablations.report.documents.marks import HELD_MARK, REFERENCE_MARK, limits_said
from ablations.report.documents.variant_row import VariantRow, answer_cell
from ablations.text import interval_text

EFFECTS_NOTE = (
    "Main effect: the mean difference between two values of an axis over the other axes, with the run-to-run spread "
    "of the verdicts; for compute, the mean ratio. Two values together: the effect of one at the other, minus its "
    "effect at the other axis's own value."
)
INTERACTIONS_NOTE = (
    "Two changes together: their difference from the reference beyond the sum of both; for compute, the ratio "
    "beyond the product."
)
MOST_INTERACTIONS = 8
"""Limit on the interactions of a grid in a table; `--json` has all."""
HEAT_NOTE = (
    "Blue is better than the reference, orange worse; a stronger colour is a larger difference, a pale one is "
    "undecided."
)


def grid_blocks(results: Results) -> Blocks:
    """A section with the cells, the main effects and the pairs of changes, and notes on their marks and colours; empty
    if no two axes are crossed and no two changes are made together."""
    if not (tables := [*cell_tables(results), *effect_tables(results)]):
        return []
    asked = Text(text=dependence(results))
    marks = (
        f"{HELD_MARK} also differs with intervals corrected for all comparisons, = shows no difference (at most "
        f"{limits_said(results.questions)}), ? cannot tell"
    )
    said = filter(None, (reference_values(results), f"Marks: {marks}.", *effect_notes(results), HEAT_NOTE))
    heading = "The grid" if results.grid else "Two changes together"
    return [Heading(text=heading), *([asked] if asked.text else []), *tables, Text(text=" ".join(said), kind="note")]


def dependence(results: Results) -> str:
    """Whether the effect of one axis on the level depends on the other, for a grid of two axes: of several interactions
    the largest, with its interval; empty without one.

    `Does the effect of loss.type on the level depend on batch.prompts? Yes: dapo instead of cispo changes it by +0.052
    at 32 and by +0.020 at 16, a difference of +0.032 [+0.010, +0.054].`
    """
    grid, known = results.grid, []
    if grid is not None and len(grid.axes) == 2:
        known = [one for one in grid.interactions if one.answers[LEVEL.name].lo is not None]
    if grid is None or not known:
        return ""
    most = max(known, key=lambda one: abs(one.answers[LEVEL.name].estimate or 0.0))
    (first, a), (second, b) = most.first, most.second
    level, a0, b0 = most.answers[LEVEL.name], grid.bases[first], grid.bases[second]
    # The largest of several is chosen for its size, so its corrected interval decides.
    verdict, lo, hi = level.verdict, level.lo, level.hi
    if len(known) > 1:
        verdict, lo, hi = level.joint_verdict, level.joint_lo, level.joint_hi
    words = {LEVEL.higher: "Yes", LEVEL.lower: "Yes", NO_DIFFERENCE: "No difference is seen"}
    size, said = interval_text(level.estimate, lo, hi, LEVEL.form), words.get(verdict, "This cannot be decided yet")

    def level_of(*cell: str) -> float:
        line = results.compared(grid.cells[cell])
        assert line is not None
        assert line.level is not None
        return line.level

    at_b, at_b0 = (format(level_of(a, at) - level_of(a0, at), LEVEL.form) for at in (b, b0))
    among = f", the largest of {len(known)} and corrected for them" if len(known) > 1 else ""
    return (
        f"Does the effect of {first} on the level depend on {second}? {said}: {a} instead of {a0} changes the level by "
        f"{at_b} at {b} and by {at_b0} at {b0}, a difference of {size}{among}."
    )


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
        if grid.interactions:
            found.append(_interactions_of_grid(results, grid))
    if results.interactions:
        pairs = {f"{one.first} with {one.second}": one.answers for one in results.interactions}
        table = _effects(results, "interactions", "two changes together, beyond their sum", "pair", pairs)
        said = [one.said for one in results.interactions]
        rows = tuple((*row, Cell(text)) for row, text in zip(table.rows, said, strict=True))
        found.append(replace(table, columns=(*table.columns, Column(heading="the two", kind="words")), rows=rows))
    return found


def _interactions_of_grid(results: Results, grid: Grid) -> Table:
    """A line per interaction of two values; of many, those with the largest in level."""
    largest = sorted(grid.interactions, key=lambda one: -abs(one.answers[LEVEL.name].estimate or 0.0))
    shown = {f"{' '.join(one.first)} with {' '.join(one.second)}": one.answers for one in largest[:MOST_INTERACTIONS]}
    more = f", the {MOST_INTERACTIONS} largest of {len(largest)}" if len(largest) > MOST_INTERACTIONS else ""
    title = f"two values together, beyond the sum of each{more}"
    return _effects(results, "grid-interactions", title, "values", shown, num_joint=len(largest))


def effect_notes(results: Results) -> list[str]:
    """The meaning of the numbers in the tables of effects."""
    return [*([EFFECTS_NOTE] if results.grid else []), *([INTERACTIONS_NOTE] if results.interactions else [])]


def reference_values(results: Results) -> str:
    """Note below the tables on the mark of the reference's own values; empty if there are none."""
    own: Sequence[str] = [f"{axis} {value}" for axis, value in results.grid.own.items()] if results.grid else ()
    return f"{REFERENCE_MARK} {results.plan.reference}'s own value: {', '.join(own)}." if own else ""


def _effects(
    results: Results,
    name: str,
    title: str,
    first: str,
    lines: Mapping[str, Mapping[str, Answer]],
    num_joint: int | None = None,
) -> Table:
    """A line per name, with a column for each question that one of the lines answers; their intervals are joint for
    `num_joint`, by default all lines."""
    questions = [
        one.name for one in results.questions if any(line[one.name].estimate is not None for line in lines.values())
    ]
    answers = [[line[question] for question in questions] for line in lines.values()]
    shown = [[answer_cell(one, is_joint=(num_joint or len(lines)) > 1) for one in row] for row in answers]
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
