"""The tables of a comparison: a line per variant with its differences from the reference; every number; the numbers
of a paper; the hours."""

from collections.abc import Callable, Mapping, Sequence

from ablations.answers.answer import Question
from ablations.answers.paper_rule import PAPER_RULE
from ablations.answers.questions import CEILING
from ablations.findings.advice import advice_for
from ablations.findings.results import Results
from ablations.readings.hours import NOTE, hours_cells
from ablations.report.documents.blocks import Cell, Column, Kind, Table, cells, table_of_rows
from ablations.report.documents.variant_row import VariantRow, is_corrected
from ablations.report.figures.colours import OTHERS_COLOUR, Style, look_of
from ablations.text import compute_text

MadeColumn = tuple[Column, Callable[[VariantRow], Cell | str]]
"""A column with the function that gives its cells."""
LATEX_HEADINGS = {"level": "Δlevel", "ceiling": "ΔA", "compute": "C/C_ref"}


def comparison_table(
    results: Results,
    *,
    names: Sequence[str] | None = None,
    look: Mapping[str, Style] | None = None,
    with_changes: bool = True,
    title: str = "",
    notes: Sequence[str] = (),
) -> Table:
    """One line per variant: its differences from the reference with the marks of their verdicts.

    `names` are the variants to show, in this order, by default all; `look` their colours. A narrow display shows only
    the columns without a rank.
    """
    all_count = all(one.num_counting == len(one.runs) for one in results.variants)
    colours = look_of(results) if look is None else look
    shown = [
        _column("variant", lambda row: _name(row, colours), kind="name"),
        *([_column("changes", lambda row: results.changes(row.variant.name), kind="prose")] if with_changes else []),
        _column("seeds", lambda row: Cell(row.seeds, row.variant.num_counting), rank=3 if all_count else 1),
    ]
    for question in results.questions:
        shown.append(_column(results.heading(question), lambda row, question=question: row.marked(question)))
        shown += [_column("A [95 %]", lambda row: row.A, rank=2)] if question is CEILING else []
    shown += [
        _column("C_mid", lambda row: row.lone("C_mid", compute_text), rank=6),
        _column("B", lambda row: row.lone("B", "{:.2f}".format), rank=7),
        _column("cost", lambda row: row.cost, rank=5),
        _column("fit", lambda row: row.fit, kind="words", rank=4),
    ]
    return _table(results, shown, names, name="comparison", title=title, notes=tuple(notes))


def numbers_table(results: Results, *, names: Sequence[str] | None = None) -> Table:
    """Every number and verdict of the comparison, with the intervals that are corrected for all comparisons; seeds,
    changes, fit and cost are only in `comparison_table`."""
    shown = [_column("variant", lambda row: row.variant.name, kind="name")]
    for question in results.questions:
        shown.append(_column(question.name, lambda row, question=question: row.verdict(question), kind="words"))
        shown += [_column("A [95 %]", lambda row: row.A)] if question is CEILING else []
        shown += [_column("A under eq. 1", lambda row: row.A_eq1)] if question is CEILING else []
        shown.append(_column(results.heading(question), lambda row, question=question: _number(row, question)))
        if is_corrected(results):
            shown.append(_column(f"{question.name}, corrected", lambda row, question=question: _joint(row, question)))
    shown += [
        _column(PAPER_RULE, lambda row: row.paper_rule, kind="words"),
        _column("B", lambda row: row.lone("B", "{:.2f}".format)),
        _column("C_mid", lambda row: row.lone("C_mid", compute_text)),
        _column("R_0", lambda row: row.lone("R_0", "{:.3f}".format)),
        _column("published A, B, C_mid", lambda row: row.published),
        _column("what would decide", lambda row: advice_for(row.results, row.variant.name), kind="prose"),
    ]
    return _table(results, shown, names, name="numbers")


def paper_numbers(results: Results) -> Table:
    """The numbers of a comparison for a paper; a star marks a decided difference."""
    at = "" if results.read_early is None else f" at {compute_text(results.read_early)}"
    shown = [_column("variant", lambda row: row.variant.name, kind="name")]
    if any(one.num_counting < len(one.runs) for one in results.variants):
        shown.append(_column("seeds", lambda row: row.seeds))
    for question in results.questions:
        shown += [_column("A", lambda row: row.A)] if question is CEILING else []
        heading = LATEX_HEADINGS.get(question.name, question.name)
        heading += at if question.is_up_to_a_compute else ""
        shown.append(_column(heading, lambda row, question=question: _starred(row, question)))
    return _table(results, shown, None, name="paper-numbers")


def hours_table(results: Results) -> Table | None:
    """Device time of each variant; None if no run records it."""
    lines = hours_cells({variant.name: variant.hours for variant in results.variants})
    if not lines:
        return None
    look = look_of(results)
    rows = [line | {"variant": Cell(line["variant"], colour=look[line["variant"]].colour)} for line in lines]
    return table_of_rows(rows, name="hours", title="where the hours went", notes=(NOTE,))


def _table(
    results: Results, shown: Sequence[MadeColumn], names: Sequence[str] | None, *, name: str, title: str = "",
    notes: tuple[str, ...] = (),
) -> Table:  # fmt: skip
    """A table of these columns, without those that are empty in every row."""
    order = [one.name for one in results.variants] if names is None else names
    rows = [VariantRow(results=results, variant=results.variant(one)) for one in order]
    made = [[cell(row) for _, cell in shown] for row in rows]
    full = [at for at in range(len(shown)) if any(line[at] != "" and line[at] != Cell("") for line in made)]
    return Table(
        name=name,
        columns=tuple(shown[at][0] for at in full),
        rows=tuple(cells(*(line[at] for at in full)) for line in made),
        title=title,
        notes=notes,
    )


def _column(
    heading: str, cell: Callable[[VariantRow], Cell | str], *, kind: Kind = "number", rank: int = 0
) -> MadeColumn:
    return Column(heading=heading, kind=kind, rank=rank), cell


def _name(row: VariantRow, look: Mapping[str, Style]) -> Cell:
    style = look.get(row.variant.name)
    return Cell(row.marked_name, colour="" if style is None or style.colour == OTHERS_COLOUR else style.colour)


def _number(row: VariantRow, question: Question) -> Cell:
    answer = row.answer(question)
    return Cell("") if answer is None else Cell(answer.cell, answer.estimate)


def _joint(row: VariantRow, question: Question) -> Cell:
    answer = row.answer(question)
    return Cell(row.joint(question), None if answer is None else answer.joint_lo)


def _starred(row: VariantRow, question: Question) -> Cell:
    answer = row.answer(question)
    is_starred = answer is not None and answer.differs and answer.read_at is None
    return Cell(f"{row.number(question)}{'*' * is_starred}")
