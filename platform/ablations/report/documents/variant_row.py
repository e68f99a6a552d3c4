"""One variant of a comparison as cells of a table; a cell without a number is empty.

VariantRow(results=results, variant=results.variant("loo-loss")).number(LEVEL)    -0.049 [-0.071, -0.027]
"""

from collections.abc import Callable
from dataclasses import dataclass

from ablations.answers.answer import Answer, Question
from ablations.answers.compare import VariantResult
from ablations.answers.questions import CEILING, LEVEL
from ablations.findings.fitted_variant import NO_FIT, FittedVariant
from ablations.findings.results import Results
from ablations.fit.asymptote import EQ1_DOUBTED
from ablations.report.documents.blocks import Cell, Tone
from ablations.report.documents.marks import COLLAPSED_MARK, marked_answer
from ablations.report.documents.number_cells import asymptote_cell
from ablations.text import compute_text, interval_text

LARGE = 1e9
"""Compute of this size and more is written in powers of ten."""
SAID_BY_THE_PAPER_RULE = {
    "ceiling up": "up",
    "ceiling down": "down",
    "no difference seen": "equal",
    "cannot tell": "cannot tell",
    "reference": "",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class VariantRow:
    """A variant, and the results in which it is compared."""

    results: Results
    variant: FittedVariant

    @property
    def line(self) -> VariantResult | None:
        """The variant's result in the comparison; None if it or the reference has no fit."""
        return self.results.compared(self.variant.name)

    @property
    def is_reference(self) -> bool:
        """True for the variant with which all others are compared."""
        return self.variant.name == self.results.plan.reference

    def answer(self, question: Question) -> Answer | None:
        """The answer to a question; None if the variant is not compared, and for the reference."""
        return None if self.line is None or self.is_reference else self.line.answers[question.name]

    @property
    def seeds(self) -> str:
        """Number of seeds whose level counts: `2 of 3`."""
        return f"{self.variant.num_counting} of {len(self.variant.runs)}"

    @property
    def marked_name(self) -> str:
        """The name, with a mark if a seed collapsed or fell."""
        is_spoiled = self.line is not None and self.line.fit_verdict in ("collapsed", "fell")
        return f"{self.variant.name}{COLLAPSED_MARK * is_spoiled}"

    @property
    def A(self) -> Cell:
        """The asymptote with its interval, sorted by its lower end without an estimate."""
        found = self.results.asymptote(self.variant)
        return Cell(NO_FIT) if found is None else asymptote_cell(found)

    @property
    def A_eq1(self) -> Cell:
        """The asymptote under eq. 1, with its interval."""
        return Cell("") if self.line is None else asymptote_cell(self.line.asymptote_under_eq1)

    @property
    def paper_rule(self) -> str:
        """The verdict of the paper's own rule."""
        return SAID_BY_THE_PAPER_RULE[self.line.paper_rule] if self.line else ""

    @property
    def level(self) -> str:
        """The level itself, without subtracting the reference's; with its compute if that is not the comparison's."""
        return "" if self.line is None or self.line.level is None else f"{self.line.level:.3f}{self.line.level_at}"

    @property
    def fit(self) -> str:
        """The verdict on its fits, with the numbers of runs that collapsed or failed and of runs that a rule
        stopped."""
        said = self.results.fit_verdict(self.variant.name)
        if self.line and self.line.doubts_eq1:
            said += f"; {EQ1_DOUBTED}"
        stopped = sum(stop.variant == self.variant.name for stop in self.results.stopped.values())
        if not stopped:
            return said
        return f"{said}; stopped" if stopped == len(self.variant.runs) else f"{said}; {stopped} stopped"

    @property
    def cost(self) -> Cell:
        """Compute of all seeds together."""
        spent = self.variant.cost_gpu_hours
        return Cell(f"{spent:.0f}" if 10 <= spent < LARGE else compute_text(spent), spent)

    @property
    def published(self) -> str:
        """A, B and C_mid as a paper reports them."""
        published = self.results.plan.published.get(self.variant.name, {})
        return ", ".join(f"{published[name]:g}" for name in ("A", "B", "C_mid") if published)

    def lone(self, key: str, fixed: Callable[[float], str]) -> Cell:
        """A number of the comparison without an interval, found by its JSON key and written by `fixed`."""
        value = self.line.to_json()[key] if self.line else None
        return Cell("") if value is None else Cell(fixed(value), value)

    def verdict(self, question: Question) -> str:
        """The verdict, or a note that there is no fit."""
        return self.line.answers[question.name].verdict_said if self.line else NO_FIT

    def number(self, question: Question) -> str:
        """The estimate with its interval; empty for the reference itself."""
        answer = self.answer(question)
        return "" if answer is None else answer.cell

    def own(self, question: Question) -> str:
        """The variant's own number behind the question: its level, its A; empty for a ratio."""
        return self.level if question is LEVEL else self.A.text if question is CEILING else ""

    def joint(self, question: Question) -> str:
        """Only the joint interval, `[-0.080, -0.018]`; empty for the reference and if there is none."""
        one = self.answer(question)
        return "" if one is None else interval_text(None, one.joint_lo, one.joint_hi, question.form)

    def marked(self, question: Question) -> Cell:
        """The number with the mark of its verdict; for the reference, its own value."""
        if self.line is None:
            return Cell(NO_FIT)
        if self.is_reference:
            own = self.own(question)
            return Cell(f"ref {own} " if own else f"{question.no_difference:g} ", question.no_difference)
        return answer_cell(self.line.answers[question.name], is_joint=is_corrected(self.results))


def is_corrected(results: Results) -> bool:
    """True if intervals are corrected for several comparisons."""
    return results.comparison is not None and len(results.comparison.variants) > 2


def answer_cell(answer: Answer, *, is_joint: bool) -> Cell:
    """An answer with the mark of its verdict: good if the variant is better, bad if worse, faint if undecided."""
    tone: Tone = "good" if answer.verdict == answer.question.better else "bad" if answer.differs else "faint"
    return Cell(marked_answer(answer, is_joint=is_joint), answer.estimate, tone=tone)
