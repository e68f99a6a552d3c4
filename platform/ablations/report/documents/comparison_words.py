"""A comparison in words: a sentence per variant, its changes, how it was measured, and the meaning of each verdict."""

from collections.abc import Iterable

from ablations.answers.compare import VariantResult
from ablations.answers.paper_rule import PAPER_MARGIN, PAPER_RULE
from ablations.answers.repeats import OtherSweeps
from ablations.findings.remark import clauses_on
from ablations.findings.results import Results
from ablations.fit.asymptote import VERDICT_MEANINGS
from ablations.fit.words import other_prompts
from ablations.home.home import Home
from ablations.report.documents.variant_row import VariantRow
from ablations.text import compute_text, counted

MOST_CHANGES = 16
"""Limit on changed variants; beyond it the notes below the table name the command that lists the changes."""
LEVEL_NOTE = (
    "The level is the mean pass rate over the last third of the compute at which the runs are compared; a run that "
    "ends earlier does not count. It comes directly from the evaluations; no curve is fitted."
)
PAPER_RULE_NOTE = (
    f"The {PAPER_RULE} is the paper's: two A within {PAPER_MARGIN} count as equal, regardless of their intervals. "
    "Use it to compare with the paper, not to decide."
)


def sentence(row: VariantRow) -> str:
    """The finding on a variant in one sentence, with its baseline and numbers of seeds."""
    results, variant, compared = row.results, row.variant, row.line
    reference = results.plan.reference
    first = clauses_on(results.remarks, variant.name)
    if compared is None:
        said = "; ".join([*first, "no comparison"])
        return f"{variant.name}: {said}. " + ("; ".join(variant.reasons) or f"{reference} has no fit") + "."
    ceiling = f"{f'A {row.A.text}' if compared.asymptote.rises else row.A.text} ({counted(len(variant.fits), 'seed')})"
    if row.is_reference:
        level = [f"level {row.level}"] if row.level else []
        said = [
            f"{variant.name}, the reference: {'; '.join([*first, *level, ceiling])}",
            f"fit: {compared.fit_verdict}",
        ]
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
    said = ((one, one.question.said.get(one.verdict, one.verdict)) for one in line.answers.values())
    return "; ".join(f"{words}, read{one.at_said}" if one.at_said else words for one, words in said)


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
    early = f", levels {results.at_compute}" if results.read_early is not None else ""
    asked = f"{plan.doc} After {plan.budget_gpu_hours:g} {plan.compute_name} per run{early}:".lstrip()
    return [asked, *said]


def changes_said(results: Results) -> list[str]:
    """A line of changes for every variant; empty for many variants, and for curves of other trainers."""
    changing = [variant for variant in results.variants if variant.overrides]
    if len(changing) > MOST_CHANGES:
        where = results.sweep.home.end_of_command
        shown = " and ".join(f"`platform show {name}{where}`" for name in (results.plan.sweep, *results.beside))
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
            f"{one.spread_noun} {spreads[one.name] if spreads[one.name].is_known else 'unknown'}"
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
    """Sentences on the sweeps added to the first, those among them that contribute nothing, and the common conditions;
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
        said.append(
            f"Repeated runs of {', '.join(others.sweeps)} are used too; `platform report --alone` leaves them out."
        )
    if others.left_out:
        first = others.left_out[0].rstrip(".")
        said.append(
            f"Left out because they cannot be read: {counted(len(others.left_out), 'run')} of other sweeps ({first})."
        )
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
    fits = {line.fit_verdict for line in lines}
    return meanings + [(f"fit: {name}", meaning) for name, meaning in VERDICT_MEANINGS.items() if name in fits]


def unkept_note(home: Home, reasons: Iterable[str]) -> str:
    """A note that fits are not saved in the home folder, and the consequence; empty if they are."""
    if not (why := next(filter(None, reasons), "")):
        return ""
    return f"Fits are not cached because {home.path} is not writable ({why}); every command fits again."


def unkept_results_note(results: Results) -> str:
    """A note that readings of a sweep are not saved."""
    others = results.comparison.others.unkept if results.comparison else ""
    return unkept_note(results.sweep.home, [*(run.unkept for run in results.runs), others])


def joint_note(results: Results) -> str:
    """The meaning of the joint intervals; empty if only one variant is compared."""
    comparisons = len(results.comparison.variants) - 1 if results.comparison else 0
    if comparisons < 2:
        return ""
    return f"corrected for {comparisons} comparisons (Bonferroni), so that all hold at once in 95 % of studies"
