"""A comparison in words: a line of cells and a sentence per variant, and the meaning of each verdict.

The report and the page show the same words.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ablations.answers.answer import Question
from ablations.answers.compare import VariantResult
from ablations.answers.paper_rule import PAPER_MARGIN, PAPER_RULE
from ablations.answers.questions import CEILING, LEVEL
from ablations.answers.repeats import OtherSweeps
from ablations.findings.remarks import clauses_on
from ablations.findings.results import NO_FIT, FittedVariant, Results
from ablations.fit.asymptote import EQ1_DOUBTED, VERDICT_MEANINGS
from ablations.fit.words import other_prompts
from ablations.home.home import Home
from ablations.text import compute_text, counted, interval_text

LARGE = 1e9
"""Compute from which a power of ten is written."""
MOST_CHANGES = 16
"""Limit on changed variants; beyond it the notes below the table name the command that lists the changes."""
LEVEL_NOTE = (
    "The level is the mean pass rate over the last third of the compute that both have spent. "
    "It comes directly from the evaluations; no curve is fitted."
)
PAPER_RULE_NOTE = (
    f"The {PAPER_RULE} is the paper's: two A within {PAPER_MARGIN} count as equal, regardless of their intervals. "
    "Use it to compare with the paper, not to decide."
)
SAID_BY_THE_PAPER_RULE = {
    "ceiling up": "up",
    "ceiling down": "down",
    "no difference seen": "equal",
    "cannot tell": "cannot tell",
    "reference": "",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ResultRow:
    """The cells of one variant in a comparison, as text; a cell without a number is empty.

    ResultRow(results=results, variant=results.variant("loo-loss")).number(LEVEL)    -0.049 [-0.071, -0.027]
    """

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

    @property
    def seeds(self) -> str:
        """Number of seeds with a fit: `2 of 3`."""
        return f"{len(self.variant.fits)} of {len(self.variant.runs)}"

    @property
    def A(self) -> str:
        """The asymptote with its interval."""
        estimate = self.results.asymptote(self.variant)
        return estimate.cell() if estimate else NO_FIT

    @property
    def A_eq1(self) -> str:
        """The asymptote under eq. 1, with its interval."""
        return self.line.asymptote_under_eq1.cell() if self.line else ""

    @property
    def paper_rule(self) -> str:
        """The verdict of the paper's own rule."""
        return SAID_BY_THE_PAPER_RULE[self.line.paper_rule] if self.line else ""

    @property
    def level(self) -> str:
        """The level itself, without subtracting the reference's."""
        return "" if self.line is None or self.line.level is None else f"{self.line.level:.3f}"

    @property
    def fit(self) -> str:
        """The verdict on its fits, the number of runs that collapsed or failed, and of those that a rule stopped."""
        said = self.results.fit_verdict(self.variant.name)
        if self.line and self.line.doubts_eq1:
            said += f"; {EQ1_DOUBTED}"
        stopped = sum(stop.variant == self.variant.name for stop in self.results.stopped.values())
        if not stopped:
            return said
        return f"{said}; stopped" if stopped == len(self.variant.runs) else f"{said}; {stopped} stopped"

    @property
    def cost(self) -> str:
        """Compute of all seeds together."""
        spent = self.variant.cost_gpu_hours
        return f"{spent:.0f}" if 10 <= spent < LARGE else compute_text(spent)

    @property
    def published(self) -> str:
        """A, B and C_mid as a paper reports them."""
        published = self.results.plan.published.get(self.variant.name, {})
        return ", ".join(f"{published[name]:g}" for name in ("A", "B", "C_mid") if published)

    def lone(self, key: str, fixed: Callable[[float], str]) -> str:
        """A number of the comparison without an interval, by its key in JSON, as `fixed` writes it."""
        value = self.line.to_json()[key] if self.line else None
        return "" if value is None else fixed(value)

    def verdict(self, question: Question) -> str:
        """The verdict, or a note that there is no fit."""
        return self.line.answers[question.name].verdict if self.line else NO_FIT

    def number(self, question: Question) -> str:
        """The estimate with its interval; empty for the reference itself."""
        return "" if self.line is None or self.is_reference else self.line.answers[question.name].cell

    def own(self, question: Question) -> str:
        """The variant's own number behind the question: its level, its A; empty for a ratio."""
        return self.level if question is LEVEL else self.A if question is CEILING else ""

    def joint(self, question: Question) -> str:
        """The joint interval alone, `[-0.080, -0.018]`; empty for the reference and if there is none."""
        if self.line is None or self.is_reference:
            return ""
        one = self.line.answers[question.name]
        return interval_text(None, one.joint_lo, one.joint_hi, question.form)


def sentence(row: ResultRow) -> str:
    """The finding on a variant in one sentence, with its baseline and numbers of seeds."""
    results, variant, compared = row.results, row.variant, row.line
    reference = results.plan.reference
    first = clauses_on(results.remarks, variant.name)
    if compared is None:
        said = "; ".join([*first, "no comparison"])
        return f"{variant.name}: {said}. " + ("; ".join(variant.reasons) or f"{reference} has no fit") + "."
    ceiling = f"{f'A {row.A}' if compared.asymptote.rises else row.A} ({counted(len(variant.fits), 'seed')})"
    if row.is_reference:
        level = [f"level {row.level}"] if row.level else []
        said = [f"{variant.name}, the reference: {'; '.join([*first, *level, ceiling])}", f"fit: {compared.verdict}"]
    else:
        reference_seeds = counted(len(results.variant(reference).fits), "seed")
        said = [f"{variant.name}: {'; '.join([*first, verdicts_said(compared)])}. {ceiling}"]
        said += [
            one.sentence.format(number=number, own=row.level, reference=reference, reference_seeds=reference_seeds)
            for one in results.questions
            if (number := row.number(one))
        ]
    return "; no fit of ".join(["; ".join(said), *variant.reasons]) + "."


def verdicts_said(line: VariantResult) -> str:
    """The verdicts of a variant in words: "lower at equal compute; ceiling down; more compute to the ..."."""
    return "; ".join(one.question.said.get(one.verdict, one.verdict) for one in line.answers.values())


def answers(results: Results) -> list[str]:
    """The sweep file's question and the compute spent, then a line per variant: remarks on its runs, and its verdicts
    in words.
    """
    plan = results.plan
    if results.comparison is None or len(results.comparison.variants) < 2:
        return []
    said = []
    for one in results.comparison.variants:
        first = clauses_on(results.remarks, one.name)
        if one.name != plan.reference:
            said.append(f"{one.name}, against {plan.reference}: {'; '.join([*first, verdicts_said(one)])}.")
        elif first:
            said.append(f"{one.name}, the reference: {'; '.join(first)}.")
    asked = f"{plan.doc} After {plan.budget_gpu_hours:g} {plan.compute_name} per run:".lstrip()
    return [asked, *said]


def changes_said(results: Results) -> list[str]:
    """A line of changes for every variant; empty for many variants, and for curves of other trainers."""
    changing = [variant for variant in results.variants if variant.overrides]
    if len(changing) > MOST_CHANGES:
        shown = " and ".join(f"`platform show {name}`" for name in (results.plan.sweep, *results.beside))
        return [f"{shown} {'list' if results.beside else 'lists'} the changes of each variant."]
    said = [f"{variant.name} changes {results.changes(variant.name)}." for variant in changing]
    if any(variant.name == results.plan.reference for variant in changing):
        said.append(f"Changes are relative to the sweep's own reference, not to {results.plan.reference}.")
    return said


def method(results: Results) -> str:
    """The meaning of a level, and the sources of uncertainty inside and outside the intervals; empty if nothing is
    compared.
    """
    if results.comparison is None or len(results.comparison.variants) < 2:
        return ""
    spreads = results.comparison.spreads
    if results.comparison.is_provisional:
        intervals = (
            f"{LEVEL_NOTE} No variant has a second seed, so the run-to-run spread is unknown: every difference is "
            "provisional, and the interval of A describes this run only."
        )
    else:
        said = "; ".join(
            f"{one.spread_noun} {spreads[one.spread] if spreads[one.spread].is_known else 'unknown'}"
            for one in results.questions
        )
        intervals = (
            f"{LEVEL_NOTE} The 95 % intervals come from the spread between seeds: Student's t with the standard "
            f"deviation between runs of one recipe: {said}."
        )
    prompts = other_prompts([fit for one in results.variants for fit in one.fits])
    others = _other_sweeps(results.comparison.others)
    ceiling = results.plan.fit_settings.ceiling
    limit = "" if ceiling is None else f"No A lies above {ceiling:.3g}, the highest pass rate that the task allows."
    return " ".join(filter(None, (together_said(results), intervals, limit, others, prompts)))


def together_said(results: Results) -> str:
    """Sentences on the sweeps beside the first, the sweeps among them that add nothing, and the common conditions;
    empty for one sweep."""
    beside, plan = results.beside, results.plan
    if not beside:
        return ""
    names = [variant.name for variant in plan.variants]
    added = [name for name in beside if any(one.endswith(f" ({name})") for one in names)]
    said = [f"Variants marked ({name}) belong to that sweep." for name in added]
    said += [
        f"{name} adds nothing: all of its runs are in {plan.sweep} already." for name in beside if name not in added
    ]
    window = f"{compute_text(plan.fit_from_gpu_hours)} to {compute_text(plan.fit_to_gpu_hours)} {plan.compute_name}"
    return " ".join([*said, f"All runs are fitted in the window of {plan.sweep}, {window}, and each counts once."])


def _other_sweeps(others: OtherSweeps) -> str:
    """The other sweeps whose runs count, and those that could not be read; empty if there are none."""
    said = []
    if others.sweeps:
        said.append(f"Repeated runs of {', '.join(others.sweeps)} are used too; --alone leaves them out.")
    if others.left_out:
        first = others.left_out[0].rstrip(".")
        said.append(f"Left out because unreadable: {counted(len(others.left_out), 'run')} of other sweeps ({first}).")
    return " ".join(said)


def glossary(results: Results) -> list[tuple[str, str]]:
    """The meaning of every verdict in the table, by its column."""
    lines = results.comparison.variants if results.comparison else ()
    said = {one.name: {line.answers[one.name].verdict for line in lines} for one in results.questions}
    meanings = [
        (f"{one.name}: {verdict}", meaning)
        for one in results.questions
        for verdict, meaning in one.meanings.items()
        if verdict in said[one.name]
    ]
    fits = {line.verdict for line in lines}
    return meanings + [(f"fit: {name}", meaning) for name, meaning in VERDICT_MEANINGS.items() if name in fits]


def unkept_note(home: Home, reasons: Iterable[str]) -> str:
    """A note that fits are not saved in the home folder, and its consequence; empty if they are."""
    if not (why := next(filter(None, reasons), "")):
        return ""
    return f"Fits are not cached because {home.path} is not writable ({why}); every command fits again."


def unkept_results_note(results: Results) -> str:
    """A note that readings of a sweep are not saved."""
    if results.sweep is None:
        return ""
    others = results.comparison.others.unkept if results.comparison else ""
    return unkept_note(results.sweep.home, [*(run.unkept for run in results.runs), others])


def joint_note(results: Results) -> str:
    """The meaning of the joint intervals; empty if only one variant is compared."""
    comparisons = len(results.comparison.variants) - 1 if results.comparison else 0
    if comparisons < 2:
        return ""
    return f"corrected for {comparisons} comparisons (Bonferroni), so that all hold at once in 95 % of studies"
