"""The verdict of a comparison in one line: the leader and the lead, and the undecided questions. It also says what the
pass rates measure."""

from collections.abc import Sequence

from ablations.answers.answer import CANNOT_TELL, NO_DIFFERENCE, PROVISIONAL, REFERENCE, Answer
from ablations.answers.compare import VariantResult
from ablations.answers.questions import CEILING, COMPUTE, LEVEL
from ablations.findings.declines import below_start_said
from ablations.findings.repeated_runs import some_recipe
from ablations.findings.results import Results
from ablations.fit.options import MIN_READINGS
from ablations.home.started_sweep import StartedSweep
from ablations.report.documents.variant_row import VariantRow
from ablations.text import capitalised, compute_text, counted, interval_text, ratio_text
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.task_sentences import task_sentence

MOST_IN_HEADLINE = 2
"""Limit on the variants named; beyond it they are only counted."""
MOST_SUMMED_UP = 8
"""Limit on the variants of a comparison whose compute is summed up; for more variants, see the figure."""
LONGEST_CHANGE = 90
"""Limit on the characters of the leader's changes."""


def headline(results: Results) -> tuple[str, ...]:
    """Sentences, the most important first; a single one if nothing can be compared.

    headline(results)[0]    "prompts-24 (batch.prompts = 24) leads scalerl by 0.064 [0.055, 0.073] at equal compute."
    """
    reference = results.plan.reference
    if results.comparison is None:
        return tuple(filter(None, (_worse_than_before(results), _too_early(results))))
    lines = [one for one in results.comparison.variants if one.name != reference]
    if not lines:
        return (f"No comparison yet: only {reference} has a fit.",)
    ranked = [one for one in results.comparison.on_one_footing if one.name != reference]
    parts = (
        _worse_than_before(results),
        _leader(results, ranked) if ranked else "",
        _apart(results, lines),
        *(_ceilings(reference, lines, verdict) for verdict in (CEILING.higher, CEILING.lower, NO_DIFFERENCE)),
        *(_compute(reference, ranked, verdict) for verdict in (COMPUTE.lower, COMPUTE.higher)),
        _unfitted(results),
        _not_counting(results),
        _undecided(lines),
    )
    return tuple(part for part in parts if part)


def _too_early(results: Results) -> str:
    """Reason why there is no comparison: too few evaluations so far, or a reference without a fit."""
    reference = results.variant(results.plan.reference)
    compute = [run.curve.compute if run.curve else run.counts.get("compute_gpu_hours", ()) for run in reference.runs]
    evaluations = max((sum(one > 0 for one in of_run) for of_run in compute), default=0)
    if evaluations < MIN_READINGS:
        have = f"{reference.name} has {evaluations} of the {MIN_READINGS} evaluations after step 0 that a fit needs"
        return f"Too early to compare: {have}."
    return f"No comparison yet: {reference.name} has no fit."


def _worse_than_before(results: Results) -> str:
    """`Both variants end below their start: RL makes this model worse.`; empty if a variant does not."""
    below = next((one for one in results.remarks if one.kind == "below its start"), None)
    if below is None or len(below.variants) < len(results.variants):
        return ""
    return f"{below_start_said(below.variants, len(results.variants))}."


def _leader(results: Results, lines: Sequence[VariantResult]) -> str:
    reference = results.plan.reference
    levels = {one.name: one.answers[LEVEL.name] for one in lines}
    known = {name: level.estimate for name, level in levels.items() if level.estimate is not None}
    if not known:
        return f"No variant has a level to compare with that of {reference}."
    at = results.at_compute
    best = max(known, key=known.__getitem__)
    level, is_ahead = levels[best], known[best] > 0
    size = level.unsigned
    number = VariantRow(results=results, variant=results.variant(best)).number(LEVEL)
    change = results.changes(best)
    called = f"{best} ({change})" if change and len(change) <= LONGEST_CHANGE else best
    leading = sum(one.verdict == LEVEL.better for one in levels.values())
    if level.verdict == PROVISIONAL:
        highest = f"{called} is highest so far" if is_ahead else f"{reference} is highest so far, {called} next"
        return f"{highest}, {number} relative to {reference}, but one seed cannot separate them."
    if level.verdict == LEVEL.better:
        alone = "" if level.is_held else f", but not with an interval corrected for {len(lines)} comparisons"
        more = [f"{leading} of {len(lines)} beat {reference}"] if leading > 1 else []
        more += _rivals(results, best)
        return f"{'; '.join([f'{called} leads {reference} by {size} in pass rate {at}{alone}', *more])}."
    if level.verdict == LEVEL.lower:
        less = _negated(level)
        next_ = f"the runner-up, {called}," if len(lines) > 1 else called
        behind = f"{reference} leads: {next_} is {less} lower in pass rate {at}"
        return f"{'; '.join([behind, *_rivals(results, reference)])}."
    if leading:
        return f"{called} is highest, {number} relative to {reference} {at}, which is not certain."
    beats = "beats" if level.verdict == NO_DIFFERENCE else "is known to beat"
    falling = sum(one.verdict == LEVEL.lower for one in levels.values())
    fall = "falls" if falling == 1 else "fall"
    short = f"; {falling} of {counted(len(lines), 'variant')} {fall} short of {reference}" if falling else ""
    if level.verdict == CANNOT_TELL and is_ahead:
        placed = f"is ahead by {size} in pass rate {at}, which is not certain"
    elif len(lines) == 1:
        lies = f"is {size} ahead" if is_ahead else f"is {_negated(level)} lower"
        placed = f"{lies} in pass rate {at}{', which is not certain' * (level.verdict == CANNOT_TELL)}"
    else:
        placed = f"comes closest, {number} in pass rate {at}"
    return f"No variant {beats} {reference}: {called} {placed}{short}."


def _negated(level: Answer) -> str:
    """The number of an answer with the other sign: `0.151 [0.03, 0.27]` for `-0.151 [-0.27, -0.03]`."""
    estimate, lo, hi = (None if end is None else -end for end in (level.estimate, level.hi, level.lo))
    return interval_text(estimate, lo, hi, ".3f")


def _rivals(results: Results, best: str) -> list[str]:
    """How the best variant stands to the others: `lr-0.00012 is not ruled out as the best`; empty without another."""
    leader = results.comparison and results.comparison.leader
    reference = results.plan.reference
    if leader is None or leader.variant != best:
        return []
    if not leader.not_ruled_out:
        if reference in (leader.runner_up, best):
            return []
        return [f"the runner-up, {leader.runner_up}, is {leader.ahead.unsigned} behind"]
    likeliest = sorted(leader.not_ruled_out.items(), key=lambda one: -(one[1] or 0.0))
    named = [f"{name}{_why_possible(results, name, p)}" for name, p in likeliest]
    if (more := len(named) - 1) >= MOST_IN_HEADLINE:
        named = [named[0], f"{more} other variants"]
    return [f"{' and '.join(named)} {'is' if len(named) == 1 else 'are'} not ruled out as the best"]


def _why_possible(results: Results, name: str, p: float | None) -> str:
    """` (better with probability 0.14; 1 of its 3 seeds collapsed)`, and so what widens its interval."""
    spoiled = [one for one in results.remarks if one.kind in ("collapsed", "fell") and name in one.variants]
    said = [*([] if p is None else [f"better with probability {p:.2f}"])]
    said += [f"{len(one.runs)} of its {counted(one.num_runs, 'seed')} {one.kind}" for one in spoiled]
    return f" ({'; '.join(said)})" if said else ""


def _apart(results: Results, lines: Sequence[VariantResult]) -> str:
    """The variants that are read at another compute than the others, with their numbers; empty if there are none."""
    found = [one for one in lines if one.answers[LEVEL.name].read_at is not None]
    if not found:
        return ""
    assert results.comparison is not None
    unit, reference = results.plan.compute_name, results.plan.reference
    due = f"{compute_text(results.comparison.footing.compute)} {unit}"
    if len(found) > MOST_IN_HEADLINE:
        return f"{len(found)} variants have not reached {due} and are compared with {reference} at their own compute."
    said = []
    for one in found:
        number = VariantRow(results=results, variant=results.variant(one.name)).number(LEVEL)
        only = f"only to {compute_text(one.level_compute)}"
        said.append(f"{one.name} has not reached {due}: {number or only}")
    return f"{'; '.join(said)}, relative to {reference} there."


def _ceilings(reference: str, lines: Sequence[VariantResult], verdict: str) -> str:
    """`a has a higher ceiling than scalerl, by 0.105 [0.030, 0.177].`; empty if none is known to."""
    found = {one.name: answer for one in lines if (answer := one.answers[CEILING.name]).verdict == verdict}
    if not found or len(lines) > MOST_SUMMED_UP:
        return ""
    if verdict == NO_DIFFERENCE:
        between = f"the ceilings of {reference} and" if len(found) == 1 else f"the ceiling of {reference} and those of"
        return f"No difference is seen between {between} {_named([*found], of=len(lines))}."
    sign = 1 if verdict == CEILING.higher else -1
    sizes = sorted(sign * one.estimate for one in found.values() if one.estimate is not None)
    by = " to ".join(f"{one:.3f}" for one in (*sizes[:1], *sizes[1:][-1:]))
    if len(found) == len(sizes) == 1:
        (one,) = found.values()
        lo, hi = (None if end is None else sign * end for end in (one.lo, one.hi)[::sign])
        by = interval_text(sizes[0], lo, hi, ".3f")
    return (
        f"{_subject([*found], of=len(lines))} ha{'s' if len(found) == 1 else 've'} a "
        f"{'higher' if sign > 0 else 'lower'} ceiling than {reference}{f', by {by}' if by else ''}."
    )


def _compute(reference: str, lines: Sequence[VariantResult], verdict: str) -> str:
    """`a and b need 1.46 to 1.90 times the compute of scalerl to the same pass rate.`; empty if none is known to."""
    found = {one.name: answer for one in lines if (answer := one.answers[COMPUTE.name]).verdict == verdict}
    if not found or len(lines) > MOST_SUMMED_UP:
        return ""
    times = sorted(one.estimate or 0.0 for one in found.values())
    range_ = " to ".join(dict.fromkeys(ratio_text(one) for one in (times[0], times[-1])))
    return (
        f"{_subject([*found], of=len(lines))} need{'s' * (len(found) == 1)} {range_} times the compute of {reference} "
        "to the same pass rate."
    )


def _unfitted(results: Results) -> str:
    names = [one.name for one in results.variants if results.compared(one.name) is None]
    return f"No fit yet: {_named(names, of=len(results.variants))}." if names else ""


def _not_counting(results: Results) -> str:
    """`prompts-20 counts with 4 of 5 seeds.`; empty if all runs of the compared variants count."""
    found = [one for one in results.variants if one.fits and one.num_counting < len(one.runs)]
    if len(found) > MOST_IN_HEADLINE:
        return f"{len(found)} of {len(results.variants)} variants count without some of their seeds."
    said = [f"{one.name} counts with {one.num_counting} of {counted(len(one.runs), 'seed')}" for one in found]
    return f"{'; '.join(said)}." if said else ""


def _undecided(lines: Sequence[VariantResult]) -> str:
    """Sentences on the undecided questions, one by one."""
    verdicts = {answer.verdict for line in lines for answer in line.answers.values()} - {REFERENCE}
    if verdicts == {PROVISIONAL}:
        return ""
    open_of: dict[str, list[str]] = {}
    for line in lines:
        for answer in line.answers.values():
            if answer.verdict in (CANNOT_TELL, PROVISIONAL):
                open_of.setdefault(answer.question.name, []).append(line.name)
    said = [
        f"the {question}{'s' * (len(names) > 1 and question != COMPUTE.name)} of {_named(names, of=len(lines))}"
        for question, names in open_of.items()
    ]
    return f"Undecided: {'; '.join(said)}." if said else "Every comparison is decided."


def _named(names: Sequence[str], of: int) -> str:
    """`a and b`, or `3 of 39 variants`."""
    if len(names) <= MOST_IN_HEADLINE:
        return " and ".join(names)
    return f"all {len(names)} variants" if len(names) == of else f"{len(names)} of {of} variants"


def _subject(names: Sequence[str], of: int) -> str:
    """The same at the beginning of a sentence."""
    named = _named(names, of)
    return capitalised(named) if len(names) > MOST_IN_HEADLINE else named


def task_of_sweep(sweep: StartedSweep) -> str:
    """The sentence on the tasks of a sweep, `Task: given 3:k9a2, ...`; empty for runs of another program, whose task
    the platform does not know, and before any run has started.
    """
    recipe = some_recipe(sweep)
    return task_sentence(recipe.tasks) if isinstance(recipe, ResolvedRecipe) else ""
