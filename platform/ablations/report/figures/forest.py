"""Forest plots: the differences from the reference in level, ceiling and compute, with intervals, and the numbers in
separate columns."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ablations.answers.answer import Answer, Question
from ablations.answers.compare import VariantResult
from ablations.answers.questions import CEILING
from ablations.findings.results import Results
from ablations.report.figures.axes import range_around, range_without_outliers
from ablations.report.figures.chart import (
    GREY,
    INK,
    Axis,
    Chart,
    DottedLine,
    EdgeLabel,
    Panel,
    interval,
    literal,
    rows_axis,
)
from ablations.report.figures.colours import OTHERS_COLOUR, leading, styles

NOT_KNOWN = "not known"
"""Text for a difference that the readings do not bound on either side."""
DECIDED_COLOUR = "#57606a"
"""The colour of a decided difference for a variant without its own colour."""
DIFFERENCES_LEGEND = (
    "Differences from the reference with 95 % intervals, best first. The dotted line marks no difference; grey "
    "means undecided; an arrow marks an interval without an end on that side, or beyond the frame."
)
"""Caption of `forest_chart`."""
SHARE_WITHIN = 0.9
"""Least share of the estimates and ends of intervals within a panel; a collapsed variant may lie beyond the frame."""


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One variant's difference with its 95 % interval."""

    variant: str
    colour: str
    answer: Answer
    """Without numbers if the variant has no ceiling."""
    text: str

    @property
    def known(self) -> list[float]:
        """The estimate and the ends of the interval, as far as they are known."""
        return [one for one in (self.answer.estimate, self.answer.lo, self.answer.hi) if one is not None]


def forest_chart(
    results: Results, *, shown: Sequence[str] | None = None, focus: Collection[str] | None = None
) -> Chart:
    """A panel for each question with a number for any variant; the panels share rows, best first.

    `shown` are the variants of the rows, all by default; `focus` are those in colour, by default the rows or, of all,
    those of the curves. An interval with one end missing is an arrow to the edge.
    Undecided answers are grey and hollow.
    """
    coloured = focus if focus is not None else leading(results) if shown is None else shown
    rows = _rows(results, shown, coloured)
    panels = [_panel(results, question, own) for question, own in rows.items() if any(row.known for row in own)]
    alt = "Each variant's difference from the baseline in level, ceiling and compute, with intervals"
    return Chart(alt=alt, panels=panels)


def left_out_note(results: Results, *, shown: Sequence[str] | None = None) -> str:
    """The reason why `forest_chart` lacks a panel; empty if none is missing."""
    rows = _rows(results, shown, ())
    empty = [question.name for question, own in rows.items() if own and not any(row.known for row in own)]
    if not empty:
        return ""
    named = " and ".join(f"the {question}" for question in empty)
    return f"Not drawn: {named}; no evaluation bounds a difference in {'it' if len(empty) == 1 else 'them'} yet."


def _rows(results: Results, shown: Sequence[str] | None, focus: Collection[str]) -> dict[Question, list[_Row]]:
    """The answers of every compared variant but the reference, in the same order for every question: best first."""
    lines = [
        line
        for line in (results.comparison.variants if results.comparison else ())
        if line.name != results.plan.reference and (shown is None or line.name in shown)
    ]
    ordered = sorted(lines, key=_rank, reverse=True)
    look = styles(results.plan, focus)
    return {
        question: [_row(question, line, look[line.name].colour) for line in ordered] for question in results.questions
    }


def _rank(line: VariantResult) -> tuple[bool, bool, float]:
    """Rank of variants by the estimate of the first question; variants that are read at another compute than the others
    come next to last, and those without an estimate last."""
    first = next(iter(line.answers.values()))
    return first.estimate is not None, first.read_at is None, first.estimate or 0.0


def _row(question: Question, line: VariantResult, own: str) -> _Row:
    answer = line.answers[question.name]
    said = answer.cell or NOT_KNOWN
    if question is CEILING and not line.asymptote.rises:  # a variant that does not rise has no ceiling
        answer, said = replace(answer, estimate=None, lo=None, hi=None), line.fit_verdict
    colour = OTHERS_COLOUR if not answer.differs else DECIDED_COLOUR if own == OTHERS_COLOUR else own
    return _Row(variant=line.name, colour=colour, answer=answer, text=said.replace("-", "−"))


def _panel(results: Results, question: Question, rows: Sequence[_Row]) -> Panel:
    known = [value for row in rows for value in row.known]
    middle = range_without_outliers(known, is_log=question.is_ratio, share=SHARE_WITHIN) if known else ()
    ends = range_around([question.no_difference, *middle], is_ratio=question.is_ratio)
    return Panel(
        title=results.heading(question),
        x=Axis(title=question.axis, range=ends, is_log=question.is_ratio, has_round_ticks=True),
        y=rows_axis([row.variant for row in rows]),
        num_rows=len(rows),
        marks=[
            mark
            for at, row in enumerate(rows)
            if row.known
            for mark in interval(
                row.answer.lo, row.answer.estimate, row.answer.hi, at=at, edges=ends, colour=row.colour,
                name=row.variant, hover=f"{{name}}: {literal(row.text)}", is_filled=row.answer.differs,
            )
        ],
        labels=[
            EdgeLabel(y=at, text=row.text, colour=INK if row.answer.differs else GREY, has_leader=False)
            for at, row in enumerate(rows)
        ],
        rules=[DottedLine(x=question.no_difference)],
    )  # fmt: skip
