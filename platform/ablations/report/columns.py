"""The columns of a comparison: heading and cell of each, and the selection for each output.

Every table, page and file reads its columns here. The columns of a question are made from the question.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ablations.answers.answer import Answer, Question
from ablations.answers.paper_rule import PAPER_RULE
from ablations.answers.questions import CEILING
from ablations.findings.advice import advice_for
from ablations.findings.results import NO_FIT, Results
from ablations.report.marks import COLLAPSED_MARK, marked_answer
from ablations.report.words.comparison import ResultRow
from ablations.terminal.listing import Column, Kind
from ablations.text import compute_text


@dataclass(frozen=True, kw_only=True)
class ResultColumn(Column):
    """One column: `ResultColumn(key="cost", heading="cost, {hours_name}", cell=lambda row: row.cost)`.

    Its heading may name {reference} and {hours_name}.
    """

    key: str
    cell: Callable[[ResultRow], str]
    kind: Kind = "number"
    question: Question | None = None
    """The question that the cell answers."""


def _below(*texts: str) -> str:
    """Lines of one cell, without the empty ones."""
    return "\n".join(filter(None, texts))


C_MID = ResultColumn(key="C_mid", heading="C_mid", cell=lambda row: row.lone("C_mid", compute_text))
B = ResultColumn(key="B", heading="B", cell=lambda row: row.lone("B", "{:.2f}".format))
R_0 = ResultColumn(key="R_0", heading="R_0", cell=lambda row: row.lone("R_0", "{:.3f}".format))
PLAIN = {
    column.key: column
    for column in (
        ResultColumn(key="variant", heading="variant", cell=lambda row: row.variant.name, kind="name"),
        ResultColumn(key="marked variant", heading="variant", cell=lambda row: _marked(row), kind="name"),
        ResultColumn(
            key="variant and seeds", heading="variant", cell=lambda row: _below(row.variant.name, f"{row.seeds} seeds")
        ),
        ResultColumn(
            key="changes", heading="changes", cell=lambda row: row.results.changes(row.variant.name), kind="prose"
        ),
        ResultColumn(key="seeds", heading="seeds", cell=lambda row: row.seeds),
        ResultColumn(key="A", heading="A [95 %]", cell=lambda row: row.A),
        ResultColumn(key="A_eq1", heading="A under eq. 1", cell=lambda row: row.A_eq1),
        ResultColumn(
            key="A and A_eq1", heading="A", cell=lambda row: _below(row.A, f"eq. 1: {row.A_eq1}" if row.A_eq1 else "")
        ),
        ResultColumn(key="paper_rule", heading=PAPER_RULE, cell=lambda row: row.paper_rule, kind="words"),
        B,
        C_MID,
        R_0,
        ResultColumn(key="fit", heading="fit", cell=lambda row: row.fit, kind="words"),
        ResultColumn(
            key="fit and parameters",
            heading="fit",
            cell=lambda row: _below(
                row.fit, *(f"{one.heading} {one.cell(row)}" for one in (B, C_MID, R_0) if one.cell(row))
            ),
        ),
        ResultColumn(key="cost", heading="cost, {hours_name}", cell=lambda row: row.cost),
        ResultColumn(key="published", heading="published A, B, C_mid", cell=lambda row: row.published),
        ResultColumn(key="verdicts", heading="verdicts", cell=lambda row: _verdicts(row), kind="words"),
        ResultColumn(
            key="open",
            heading="what would decide",
            cell=lambda row: advice_for(row.line) if row.line else "",
            kind="words",
        ),
    )
}

ColumnPart = Literal["verdict", "number", "joint", "marked", "stacked with joint"]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The columns of an output: before the questions, per question, beside the ceiling, and at the end."""

    before: Sequence[str]
    of_question: Sequence[ColumnPart]
    beside_ceiling: Sequence[str]
    behind: Sequence[str]


TERMINAL = Selection(
    before=("marked variant", "seeds"),
    of_question=("marked",),
    beside_ceiling=("A",),
    behind=("C_mid", "B", "cost", "fit"),
)
RANKS = {"A": 1, "seeds": 2, "fit": 3, "cost": 4, "C_mid": 5, "B": 6}
"""Order in which a narrow terminal drops columns."""
PAGE = Selection(
    before=("variant and seeds", "changes"),
    of_question=("stacked with joint",),
    beside_ceiling=("A and A_eq1",),
    behind=("fit and parameters", "paper_rule", "cost", "published"),
)
NUMBERS_ALONE = Selection(before=("variant",), of_question=("number",), beside_ceiling=("A",), behind=())
DOCUMENT = Selection(before=("variant", "seeds"), of_question=("number",), beside_ceiling=("A",), behind=("verdicts",))
VERDICTS = Selection(before=("variant",), of_question=("marked",), beside_ceiling=("A",), behind=("seeds", "changes"))
ALL_NUMBERS = Selection(
    before=("variant", "changes", "seeds"),
    of_question=("verdict", "number", "joint"),
    beside_ceiling=("A", "A_eq1"),
    behind=("paper_rule", "B", "C_mid", "R_0", "fit", "cost", "published", "open"),
)


def columns(results: Results, selection: Selection) -> list[ResultColumn]:
    """The columns of an output with their headings, without those that would be empty in every row."""
    plan = results.plan
    names = {"reference": plan.reference, "hours_name": plan.hours_name}
    empty = {"changes"} if not any(one.overrides for one in plan.variants) else set()
    empty |= set() if plan.published else {"published"}
    found = [PLAIN[key] for key in selection.before]
    for question in results.questions:
        own = [PLAIN[key] for key in selection.beside_ceiling if question is CEILING]
        for part in selection.of_question:
            found += own if part == "number" else []
            found += [_column(question, part)] if part != "joint" or _many(results) else []
        found += own if "number" not in selection.of_question else []
    found += [PLAIN[key] for key in selection.behind]
    return [
        replace(column, heading=column.heading.format(**names), rank=RANKS.get(column.key, 0))
        for column in found
        if column.key not in empty
    ]


def rows_of(results: Results, shown: Sequence[ResultColumn]) -> list[list[str]]:
    """The cells of each variant, in the order of the results."""
    rows = (ResultRow(results=results, variant=variant) for variant in results.variants)
    return [[column.cell(row) for column in shown] for row in rows]


def answers_of(results: Results, shown: Sequence[ResultColumn]) -> list[list[Answer | None]]:
    """The answer behind each of these cells; None without one."""
    lines = (results.compared(variant.name) for variant in results.variants)
    return [[line.answers[one.question.name] if line and one.question else None for one in shown] for line in lines]


def marked_number(row: ResultRow, question: Question) -> str:
    """The number of a variant with the mark of its verdict; for the reference, its own value."""
    if row.line is None:
        return NO_FIT
    if row.is_reference:
        return f"own {own} " if (own := row.own(question)) else f"{question.no_difference:g} "
    return marked_answer(row.line.answers[question.name], is_joint=_many(row.results))


def _column(question: Question, part: ColumnPart) -> ResultColumn:
    headings = {"verdict": question.name, "joint": f"{question.name}, corrected"}
    cells: dict[ColumnPart, Callable[[ResultRow, Question], str]] = {
        "verdict": ResultRow.verdict,
        "number": ResultRow.number,
        "joint": ResultRow.joint,
        "marked": marked_number,
        "stacked with joint": _with_joint,
    }
    return ResultColumn(
        key=f"{question.name} {part}",
        heading=headings.get(part, question.heading),
        cell=lambda row: cells[part](row, question),
        kind="words" if part == "verdict" else "number",
        question=question,
    )


def _with_joint(row: ResultRow, question: Question) -> str:
    joint = row.joint(question) if _many(row.results) else ""
    return _below(row.verdict(question), row.number(question), f"corrected {joint}" if joint else "")


def _marked(row: ResultRow) -> str:
    is_collapsed = row.line is not None and row.line.verdict == "collapsed"
    return f"{row.variant.name}{COLLAPSED_MARK * is_collapsed}"


def _verdicts(row: ResultRow) -> str:
    """All verdicts in one cell: "level down; ceiling: cannot tell; more compute"."""
    if row.is_reference:
        return "reference"
    said = ((one.name, row.verdict(one)) for one in row.results.questions)
    return "; ".join(verdict if name in verdict else f"{name}: {verdict}" for name, verdict in said)


def _many(results: Results) -> bool:
    """True if intervals are corrected for several comparisons."""
    return results.comparison is not None and len(results.comparison.variants) > 2
