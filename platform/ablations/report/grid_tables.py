"""The grid of a comparison as tables of text: a table of cells per question, the main effects of the axes, and pairs of
changes.

Terminal, page, Markdown and LaTeX show the same tables.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ablations.answers.answer import Answer
from ablations.findings.grid import Grid
from ablations.findings.results import Results
from ablations.report.colours import BLUE, ORANGE, Style
from ablations.report.columns import marked_number
from ablations.report.marks import HELD_MARK, REFERENCE_MARK, marked_answer
from ablations.report.words.comparison import ResultRow

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
"""Note on the colours of the cells, for pages that have them."""
DECIDED, UNDECIDED = 0.5, 0.12
"""Opacity of the largest difference. Text in the page's own colour stays readable on both."""


@dataclass(frozen=True, kw_only=True)
class GridTable:
    """A table of text: `GridTable(title="level − scalerl", headings=("loss.type", "16", "32"), rows=(("dapo", ...),))`.

    The first column names the row.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    answers: tuple[tuple[Answer | None, ...], ...] = ()
    """The answer that each cell shows; None for a name, for the reference and for a missing cell. Empty for a table
    without colours."""

    @property
    def colours(self) -> tuple[tuple[str, ...], ...]:
        """The colour of each cell in CSS, empty for none; with them the table is a heat map."""
        return heat_colours(self.answers) if self.answers else tuple(("",) * len(row) for row in self.rows)


def grid_tables(results: Results) -> list[GridTable]:
    """The tables of a comparison's grid: cells for each question with an answer, then main effects; then pairs of
    changes.

    Columns are the values of the shortest axis. The reference's own values are marked.
    """
    grid, together = results.grid, [interactions_table(results)] if results.interactions else []
    if grid is None:
        return together
    across = min(grid.axes, key=lambda axis: len(grid.axes[axis]))
    down = [axis for axis in grid.axes if axis != across]
    places = [dict(zip(down, values, strict=True)) for values in product(*(grid.axes[axis] for axis in down))]
    found = []
    for question in results.questions:
        rows, answers = [], []
        for place in places:
            cells = [_row_of(results, grid, {**place, across: value}) for value in grid.axes[across]]
            name = ", ".join(_value(grid, axis, value) for axis, value in place.items())
            rows.append((name, *("" if row is None else marked_number(row, question) for row in cells)))
            lines = [row.line if row and not row.is_reference else None for row in cells]
            answers.append((None, *(line and line.answers[question.name] for line in lines)))
        if any(one is not None and (one.lo, one.hi) != (None, None) for row in answers for one in row):
            heading = question.heading.format(reference=results.plan.reference)
            columns = tuple(_value(grid, across, value) for value in grid.axes[across])
            found.append(
                GridTable(
                    title=f"{heading}, by {', '.join(down)} (down) and {across} (across)",
                    headings=(", ".join(down), *columns),
                    rows=tuple(rows),
                    answers=tuple(answers),
                )
            )
    return [*found, effects_table(results, grid), *together]


def interactions_table(results: Results) -> GridTable:
    """A line per pair of changes, with what the two do in words at its end."""
    pairs = {f"{one.first} with {one.second}": one.answers for one in results.interactions}
    table = _answers_table(results, "two changes together, beyond their sum", "pair", pairs)
    return replace(
        table,
        headings=(*table.headings, "the two"),
        rows=tuple((*row, one.said) for row, one in zip(table.rows, results.interactions, strict=True)),
        answers=tuple((*row, None) for row in table.answers),
    )


def tables_heading(results: Results) -> str:
    """The heading of the section that has these tables."""
    return "The grid" if results.grid else "Two changes together"


def effects_table(results: Results, grid: Grid) -> GridTable:
    """A line per main effect."""
    twice = Counter(effect.value for effect in grid.effects)
    effects = {
        effect.value if twice[effect.value] == 1 else f"{effect.axis} {effect.value}": effect.answers
        for effect in grid.effects
    }
    against = ", ".join(f"{axis} {value}" for axis, value in grid.bases.items())
    return _answers_table(results, f"main effects, against {against}", "value", effects)


def _answers_table(results: Results, title: str, first: str, lines: Mapping[str, Mapping[str, Answer]]) -> GridTable:
    """A line per name, with a column for each question that one of the lines answers."""
    questions = [
        one.name for one in results.questions if any(line[one.name].estimate is not None for line in lines.values())
    ]
    answers = {name: [line[question] for question in questions] for name, line in lines.items()}
    return GridTable(
        title=title,
        headings=(first, *questions),
        rows=tuple(
            (name, *(marked_answer(one, is_joint=len(lines) > 1) for one in line)) for name, line in answers.items()
        ),
        answers=tuple((None, *line) for line in answers.values()),
    )


def _value(grid: Grid, axis: str, value: str) -> str:
    """A value of an axis, marked if it is the reference's own."""
    return f"{value}{REFERENCE_MARK * (grid.own.get(axis) == value)}"


def _row_of(results: Results, grid: Grid, values: dict[str, str]) -> ResultRow | None:
    name = grid.cells.get(tuple(values[axis] for axis in grid.axes))
    return None if name is None else ResultRow(results=results, variant=results.variant(name))


def grid_notes(results: Results) -> str:
    """Notes on the marks and the main effects of the tables."""
    marks = (
        f"{HELD_MARK} also differs with intervals corrected for all comparisons, = shows no difference, ? cannot tell"
    )
    notes = (EFFECTS_NOTE if results.grid else "", INTERACTIONS_NOTE if results.interactions else "")
    return " ".join(filter(None, (reference_values(results), f"Marks: {marks}.", *notes)))


def reference_values(results: Results) -> str:
    """Note below the tables on the mark of the reference's own values; empty if there are none."""
    own: Sequence[str] = [f"{axis} {value}" for axis, value in results.grid.own.items()] if results.grid else ()
    return f"{REFERENCE_MARK} {results.plan.reference}'s own value: {', '.join(own)}." if own else ""


def heat_colours(answers: Sequence[Sequence[Answer | None]]) -> tuple[tuple[str, ...], ...]:
    """A colour in CSS for each cell, as strong as its difference is large relative to the largest of its question in
    the table; empty for a cell without a number. Compute is measured by the logarithm of its ratio."""
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
