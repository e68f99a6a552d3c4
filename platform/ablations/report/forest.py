"""Data of forest plots: the differences from the reference in level, ceiling and compute."""

from collections.abc import Sequence
from dataclasses import dataclass

from ablations.answers.answer import Question
from ablations.answers.compare import VariantResult
from ablations.answers.questions import CEILING
from ablations.findings.results import Results
from ablations.report.colours import Style, styles
from ablations.report.rounding import ROUNDED
from ablations.report.words.comparison import ResultRow

NOT_KNOWN = "not known"
"""Text for a difference that the readings do not bound on either side."""


@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """One variant's difference with its 95 % interval; an end of None is unbounded.

    ForestRow(variant="loo-loss", style=style, estimate=-0.058, lo=-0.087, hi=-0.029, text="-0.058 [-0.087, -0.029]")
    """

    variant: str
    style: Style
    estimate: float | None
    """None if the estimate has no meaning by itself; one or both ends may still be known."""
    lo: float | None
    hi: float | None
    text: str

    @property
    def drawn_at(self) -> float | None:
        """The place of its marker: the estimate, else a known end; None if nothing is known."""
        return next((value for value in (self.estimate, self.lo, self.hi) if value is not None), None)

    @property
    def arrow(self) -> str:
        """The direction `right` if the difference is at `drawn_at` or above, `left` if at or below, else empty."""
        if self.estimate is not None or (self.lo is None) == (self.hi is None):
            return ""
        return "right" if self.lo is not None else "left"


@dataclass(frozen=True, kw_only=True)
class ForestPanel:
    """The answers of every variant to one question."""

    title: str
    axis_title: str
    null: float
    """The value of no difference."""
    log: bool
    rows: tuple[ForestRow, ...]
    """Every compared variant, in the plan's order, without the reference."""


def forest_panels(results: Results) -> tuple[ForestPanel, ...]:
    """A panel for each question."""
    lines = results.comparison.variants if results.comparison else ()
    others = [line for line in lines if line.name != results.plan.reference]
    return tuple(_panel(results, question, others) for question in results.questions)


def _panel(results: Results, question: Question, lines: Sequence[VariantResult]) -> ForestPanel:
    look, rows = styles(results.plan), []
    for line in lines:
        row, answer = (
            ResultRow(results=results, variant=results.variant(line.name), digits=ROUNDED),
            line.answers[question.name],
        )
        estimate, lo, hi, said = answer.estimate, answer.lo, answer.hi, row.number(question) or NOT_KNOWN
        if question is CEILING and not line.asymptote.rises:  # a variant that does not rise has no ceiling
            estimate, lo, hi, said = None, None, None, line.verdict
        rows.append(ForestRow(variant=line.name, style=look[line.name], estimate=estimate, lo=lo, hi=hi, text=said))
    return ForestPanel(
        title=question.heading.format(reference=results.plan.reference),
        axis_title=question.axis,
        null=question.no_difference,
        log=question.is_ratio,
        rows=tuple(rows),
    )
