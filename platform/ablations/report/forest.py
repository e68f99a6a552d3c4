"""Data of forest plots: the differences from the reference in level, ceiling and compute."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ablations.answers.answer import Question
from ablations.answers.compare import VariantResult
from ablations.answers.questions import CEILING
from ablations.findings.results import Results
from ablations.report.axes import ticks
from ablations.report.colours import OTHERS_COLOUR, Style, styles
from ablations.report.leading import leading
from ablations.report.words.comparison import ResultRow

NOT_KNOWN = "not known"
"""Text for a difference that the readings do not bound on either side."""
DECIDED_COLOUR = "#57606a"
"""The colour of a decided difference of a variant that has no colour of its own."""

MARGIN, LEAST_MARGIN = 0.08, 0.05
"""Margin of an axis on either side, as a share of its length; and the margin of an axis without a length."""


@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """One variant's difference with its 95 % interval; an end of None is unbounded.

    ForestRow(variant="loo-loss", colour="#216da4", estimate=-0.058, lo=-0.087, hi=-0.029, is_decided=True,
              text="-0.058 [-0.087, -0.029]")
    """

    variant: str
    colour: str
    """Grey if the answer is undecided."""
    estimate: float | None
    """None if the estimate has no meaning by itself; one or both ends may still be known."""
    lo: float | None
    hi: float | None
    text: str
    is_decided: bool
    """True if the variant differs from the reference."""

    @property
    def drawn_at(self) -> float | None:
        """The place of its marker: the estimate, else a known end; None if nothing is known."""
        return next((value for value in (self.estimate, self.lo, self.hi) if value is not None), None)


@dataclass(frozen=True, kw_only=True)
class ForestPanel:
    """The answers of every variant to one question."""

    question: str
    title: str
    axis_title: str
    null: float
    """The value of no difference."""
    log: bool
    rows: tuple[ForestRow, ...]
    """Every compared variant but the reference, in the same order in every panel: the best on top."""

    @property
    def is_empty(self) -> bool:
        """True if no variant has a number."""
        return all(row.drawn_at is None for row in self.rows)

    @property
    def range(self) -> tuple[float, float]:
        """The ends of its axis: all known numbers and no difference, with a margin."""
        known = [value for row in self.rows for value in (row.estimate, row.lo, row.hi) if value is not None]
        low, high = min([self.null, *known]), max([self.null, *known])
        if self.log:
            low, high = math.log(low), math.log(high)
        air = MARGIN * (high - low) or LEAST_MARGIN
        return (math.exp(low - air), math.exp(high + air)) if self.log else (low - air, high + air)

    def ticks(self, most: int) -> list[float]:
        """At most `most` round numbers on its axis."""
        return ticks(*self.range, most, log=self.log)


def forest_panels(results: Results, *, shown: Sequence[str] | None = None) -> tuple[ForestPanel, ...]:
    """A panel for each question that has a number of any variant; all variants by default."""
    return tuple(panel for panel in _panels(results, shown) if not panel.is_empty)


def left_out_note(results: Results, *, shown: Sequence[str] | None = None) -> str:
    """The reason why `forest_panels` lacks a panel; empty if none is missing."""
    empty = [panel.question for panel in _panels(results, shown) if panel.rows and panel.is_empty]
    if not empty:
        return ""
    named = " and ".join(f"the {question}" for question in empty)
    return f"Not drawn: {named}; no evaluation bounds a difference in {'it' if len(empty) == 1 else 'them'} yet."


def _panels(results: Results, shown: Sequence[str] | None) -> list[ForestPanel]:
    reference = results.plan.reference
    lines = [
        line
        for line in (results.comparison.variants if results.comparison else ())
        if line.name != reference and (shown is None or line.name in shown)
    ]
    look = styles(results.plan, leading(results) if shown is None else shown)
    ordered = sorted(lines, key=_rank, reverse=True)
    return [_panel(results, question, ordered, look) for question in results.questions]


def _rank(line: VariantResult) -> tuple[bool, float]:
    """Rank of variants by the estimate of the first question; variants without an estimate come last."""
    first = next(iter(line.answers.values())).estimate
    return first is not None, first or 0.0


def _panel(results: Results, question: Question, lines: Sequence[VariantResult], look: dict[str, Style]) -> ForestPanel:
    rows = []
    for line in lines:
        row, answer = ResultRow(results=results, variant=results.variant(line.name)), line.answers[question.name]
        estimate, lo, hi, said = answer.estimate, answer.lo, answer.hi, row.number(question) or NOT_KNOWN
        if question is CEILING and not line.asymptote.rises:  # a variant that does not rise has no ceiling
            estimate, lo, hi, said = None, None, None, line.verdict
        own = look[line.name].colour
        colour = OTHERS_COLOUR if not answer.differs else DECIDED_COLOUR if own == OTHERS_COLOUR else own
        rows.append(
            ForestRow(
                variant=line.name,
                colour=colour,
                estimate=estimate,
                lo=lo,
                hi=hi,
                text=said,
                is_decided=answer.differs,
            )
        )
    return ForestPanel(
        question=question.name,
        title=question.heading.format(reference=results.plan.reference),
        axis_title=question.axis,
        null=question.no_difference,
        log=question.is_ratio,
        rows=tuple(rows),
    )
