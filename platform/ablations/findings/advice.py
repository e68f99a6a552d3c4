"""What to run next: the runs to continue, and what would settle each open question of a comparison, by its cause.

>>> next_steps(results)
['`platform sweep loo.yaml` continues loo-loss-s2, which failed.', '1 of 3 seeds of dapo collapsed: fix ...']

A collapsed or fallen seed needs more seeds beside it, or a fix; runs that ended early need the rest of their budget; a
curve that does not rise has no ceiling that compute could find; seeds that lie far apart need a look, not a budget. Of
the rest, an interval with both ends shrinks at least with the square root of the number of seeds, and one without an
end needs more compute, since the readings end too near the bend.
A price is that of the variants in question and of the reference, then that of all variants, which a sweep file trains.
The terminal, `--json`, the pages and the reports all read `next_steps`.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ablations.answers.answer import CANNOT_TELL, PROVISIONAL, Answer
from ablations.answers.compare import VariantResult
from ablations.answers.footing import NEARLY
from ablations.answers.questions import LEVEL
from ablations.findings.design_options import seeds_of
from ablations.findings.fitted_variant import FittedVariant
from ablations.findings.remark import Remark
from ablations.findings.remarks import has_failed
from ablations.findings.results import Results
from ablations.findings.unfinished_runs import is_unfinished, sweep_that_trains, to_continue
from ablations.fit.asymptote import WITHOUT_RISE
from ablations.fit.options import MIN_READINGS
from ablations.home.plan import Plan
from ablations.home.start_command import design_command, longer_command, more_seeds_command
from ablations.home.started_sweep import StartedSweep
from ablations.logs.meaning import SCORE_IS_NAN
from ablations.readings.fitted_run import FittedRun
from ablations.text import compute_text, counted

WANTED_SEEDS = 3
"""Number of seeds to propose if each variant has one."""
MOST_SEEDS = 10
"""Limit on proposed seeds; beyond it, more compute helps more."""
MOST_NAMED_OPEN = 2
"""Limit on the variants that a sentence names; beyond it they are only counted."""
MOST_CAUSES_SAID = 3
"""Limit on the sentences about causes."""
WHY = Literal["spoiled", "short", "sparse", "flat", "budget", "seeds", "apart"]
"""What keeps a question open: spoiled seeds, runs that ended early, too few evaluations for a level, a curve without a
rise, too little compute, too few seeds, or seeds so far apart that no affordable number of them helps."""
DESIGNED: tuple[WHY, ...] = ("seeds", "budget")
"""Causes that a larger design cures."""


@dataclass(frozen=True, kw_only=True)
class Open:
    """An open question of a variant, and its cause: `Open(line=..., question="level", why="seeds", seeds=5, ...)`."""

    line: VariantResult
    question: str
    why: WHY
    side: VariantResult
    """The variant that causes it: this one, or the reference."""
    seeds: int = 0
    """Number of seeds that would decide it, for "seeds" and "apart"."""


def seeds_needed(answer: Answer, num_seeds: int) -> float:
    """The m with h sqrt(n / m) <= widest; infinite if an end is missing."""
    half_width = answer.question.half_width(answer.lo, answer.hi)
    if math.isinf(half_width):
        return math.inf
    return max(math.ceil(num_seeds * (half_width / answer.question.widest) ** 2), num_seeds + 1)


def undecided(line: VariantResult) -> list[Answer]:
    """The undecided answers of a variant."""
    return [answer for answer in line.answers.values() if answer.verdict == CANNOT_TELL]


def open_questions(results: Results) -> list[Open]:
    """Every open question with its cause, by variant."""
    lines = _lines(results)
    reference = next((line for line in lines if line.name == results.plan.reference), None)
    if reference is None:
        return []
    spoiled, sparse = _spoiled(results), _sparse(results)
    due = _due(results)
    return [_open(line, reference, answer, spoiled, sparse, due) for line in lines for answer in undecided(line)]


def _due(results: Results) -> float:
    """The compute at which variants were to be read; of another trainer, whose budget is unknown, at which they are."""
    assert results.comparison is not None
    return results.comparison.footing.compute if results.plan.imported else results.due


def _open(
    line: VariantResult,
    reference: VariantResult,
    answer: Answer,
    spoiled: Mapping[str, Sequence[Remark]],
    sparse: Collection[str],
    due: float,
) -> Open:
    question = answer.question.name
    sides = (line, reference)
    needed = seeds_needed(answer, line.num_seeds)
    fallen = next((side for side in sides if side.name in spoiled), None)
    flat = next((side for side in sides if side.fit_verdict in WITHOUT_RISE), None)
    if fallen is not None and (question == LEVEL.name or flat in (None, fallen)):
        return Open(line=line, question=question, why="spoiled", side=fallen)
    if line.level_compute * NEARLY < due:
        return Open(line=line, question=question, why="short", side=line)
    seldom = next((side for side in sides if side.name in sparse), None)
    if seldom is not None and question == LEVEL.name and answer.estimate is None:
        return Open(line=line, question=question, why="sparse", side=seldom)
    if flat is not None and question != LEVEL.name:
        return Open(line=line, question=question, why="flat", side=flat)
    if needed <= MOST_SEEDS:
        return Open(line=line, question=question, why="seeds", side=line, seeds=int(needed))
    if question == LEVEL.name and math.isfinite(needed):
        return Open(line=line, question=question, why="apart", side=line, seeds=int(needed))
    return Open(line=line, question=question, why="budget", side=line)


def _spoiled(results: Results) -> dict[str, list[Remark]]:
    """The remarks on collapsed and on fallen seeds, by variant."""
    found: dict[str, list[Remark]] = {}
    for one in results.remarks:
        if one.kind in ("collapsed", "fell"):
            for name in one.variants:
                found.setdefault(name, []).append(one)
    return found


def _sparse(results: Results) -> set[str]:
    """The variants with runs that have too few evaluations for a level."""
    return {name for one in results.remarks if one.kind == "no level" for name in one.variants}


def _ends_in_nan(results: Results, variant: str) -> bool:
    """True if scores of a run of this variant are NaN to its end, so that going on would add none."""
    return any(SCORE_IS_NAN in text for run in results.variant(variant).runs for text in run.warnings)


def _spoiled_said(remarks: Sequence[Remark], of: str = "") -> str:
    """`1 of 5 seeds of ratio-4.1 collapsed`."""
    return " and ".join(f"{len(one.runs)} of {counted(one.num_runs, 'seed')}{of} {one.kind}" for one in remarks)


def next_steps(results: Results) -> list[str]:
    """Sentences on what to run next, the most urgent first, each with its command and cost where it has them; where all
    is decided, the command that looks further."""
    said = _to_run(results)
    if not said and _are_compared(results) and not results.plan.imported:
        where = results.sweep.home.end_of_command
        said.append(f"`platform forecast {results.plan.sweep}{where}` looks beyond this budget.")
    return said


def is_decided(results: Results) -> bool:
    """True if every variant has been compared, and nothing is left to run."""
    return _are_compared(results) and not _to_run(results)


def _are_compared(results: Results) -> bool:
    is_over = not results.plan.search and not is_unfinished(results)
    return is_over and 1 < len(_lines(results)) == len(results.variants)


def _to_run(results: Results) -> list[str]:
    found = to_continue(results)
    if results.comparison is None or results.plan.search or is_unfinished(results):
        return found
    if _is_provisional(results):
        return found or [_second_seed(results)]
    questions = open_questions(results)
    causes = [one for one in questions if one.why != "short" or not found]
    said = [*found, *_causes_said(results, causes)]
    for why in DESIGNED:
        if some := _because(why, questions):
            said.append(_settling(results, why, some))
    return said


def with_next_steps(results: Results) -> dict[str, Any]:
    """The comparison as plain data for JSON, with what to run next."""
    return results.to_json() | {"next": next_steps(results)}


def design_hint(results: Results) -> str:
    """The command that lists designs, if seeds or budget would settle a question; else empty."""
    is_open = results.comparison is not None and not (is_unfinished(results) or _is_provisional(results))
    if not is_open or results.plan.imported or not any(one.why in DESIGNED for one in open_questions(results)):
        return ""
    command = design_command(sweep_that_trains(results, results.plan.reference))
    return f"`{command}` shows what each design could detect."


def _sweeps_of(results: Results, variants: Iterable[str]) -> list[tuple[StartedSweep, list[str]]]:
    """The sweeps that train these variants, each with their names."""
    found: dict[str, tuple[StartedSweep, list[str]]] = {}
    for name in variants:
        sweep = sweep_that_trains(results, name)
        found.setdefault(sweep.name, (sweep, []))[1].append(name)
    return [*found.values()]


def _second_seed(results: Results) -> str:
    plan, now = results.plan, max(len(variant.runs) for variant in results.variants)
    if now > 1:
        some, why = f"variants have up to {now} seeds", _not_compared(results)
        return f"One seed cannot separate variants; {some}, but no variant has two that can be compared: {why}."
    if plan.imported:
        return "One seed cannot separate variants: add a second seed for every variant."
    names = [variant.name for variant in results.variants]
    price = _price(results, (WANTED_SEEDS - now) * len(names))
    how = _with_more_seeds(results, dict.fromkeys(names, WANTED_SEEDS - now))
    return f"One seed cannot separate variants; three can, for {price}: {how}."


def _not_compared(results: Results) -> str:
    """How many runs cannot be compared, and why: `of 6 runs, 2 failed, 1 had no evaluation that can be read`."""
    whys = [_why_not_compared(results.plan, one, run) for one in results.variants for run in one.runs]
    said = ", ".join(f"{number} {why}" for why, number in Counter(filter(None, whys)).most_common())
    return f"of {counted(len(whys), 'run')}, {said or 'none fell out'}"


def _why_not_compared(plan: Plan, variant: FittedVariant, run: FittedRun) -> str:
    """Why a run is not compared: `failed`; empty for one that is."""
    if run.fit is not None:
        return "ended early" if run.name in variant.short else ""
    if has_failed(run):
        return "failed"
    if run.curve is None:
        return "had no evaluation that can be read"
    beyond = run.curve.compute[run.curve.compute > 0]
    if beyond.size < MIN_READINGS:
        return f"had fewer than {MIN_READINGS} evaluations beyond step 0"
    first, last = plan.fit_from_gpu_hours, plan.fit_to_gpu_hours
    if ((beyond > first) & (beyond < last)).sum() + (beyond >= last).any() < MIN_READINGS:
        span = f"{compute_text(first)} to {compute_text(last)} {plan.compute_name}"
        return f"had fewer than {MIN_READINGS} evaluations in the fitted range ({span})"
    return "had a curve that cannot be fitted"


def _settling(results: Results, why: WHY, some: Sequence[Open]) -> str:
    """What more seeds or budget would settle, what it costs, and how to do it."""
    plan, every, lines = results.plan, _lines(results), _with_reference(results, some)
    most = max(one.seeds for one in some)
    what = (
        f"{most} seeds instead of {min(one.num_seeds for one in lines)}"
        if why == "seeds"
        else "At least twice the budget"
    )

    def num_runs(of: Sequence[VariantResult]) -> int:
        return sum(max(most - one.num_seeds, 0) if why == "seeds" else one.num_seeds for one in of)

    said = f"{what} of {_named(results, lines)} would settle {_listed(_questions(some))}"
    said += f", for {_price(results, num_runs(lines))}"
    if plan.imported:
        return f"{said}."
    all_of = compute_text(num_runs(every) * plan.budget_gpu_hours)
    with_all = f" ({all_of} with all variants)" if num_runs(every) > num_runs(lines) else ""
    if why == "seeds":
        how = _with_more_seeds(results, {one.name: most - one.num_seeds for one in lines})
    else:
        sweeps = _sweeps_of(results, [one.name for one in lines])
        how = " and ".join(f"`{longer_command(own, 2 * plan.budget_gpu_hours)}`" for own, _ in sweeps)
    return f"{said}{with_all}: {how}."


def _with_more_seeds(results: Results, wanted: Mapping[str, int]) -> str:
    """How to train this many more seeds of each variant: ``seeds: [0, 1, 2]` in the sweep file, then `platform sweep
    loo.yaml``. A file keeps the seeds that it has, also those that do not count."""
    sweeps = _sweeps_of(results, [name for name, more in wanted.items() if more > 0])
    said = []
    for sweep, names in sweeps:
        now = sorted({run.seed for run in sweep.plan.runs})
        seeds = [*seeds_of(now, len(now) + max(wanted[name] for name in names))]
        where = "the sweep file" if len(sweeps) == 1 and not results.beside else f"the file of {sweep.name}"
        said.append(f"`seeds: {seeds}` in {where}, then `{more_seeds_command(sweep)}`")
    return "; ".join(said)


def _causes_said(results: Results, found: Sequence[Open]) -> list[str]:
    """A sentence for each cause that neither a number of seeds nor a budget of the study cures."""
    spoiled = _spoiled(results)
    said: dict[str, None] = {}
    for side in _sides(_because("spoiled", found)):
        remarks, num = spoiled[side.name], len(results.variant(side.name).runs)
        what = "the collapse" if remarks[0].kind == "collapsed" else "the fall"
        first = f"{_spoiled_said(remarks, f' of {side.name}')}:"
        if sum(len(one.runs) for one in remarks) == num:
            said[f"{first} fix {what} first."] = None
        elif results.plan.imported:
            said[f"{first} fix {what}, or train more seeds of it, {_price(results, num)} for {num}."] = None
        else:
            beside = sweep_that_trains(results, side.name).plan.variants
            every = compute_text(num * len(beside) * results.plan.budget_gpu_hours)
            price = f"{_price(results, num)} for {num} of it, {every} for {num} of every variant"
            said[
                f"{first} fix {what}, or train more seeds, {price}: {_with_more_seeds(results, {side.name: num})}."
            ] = None
    ended = [side.name for side in _sides(_because("short", found))]
    diverged = [name for name in ended if _ends_in_nan(results, name)]
    if diverged:
        said[
            f"The scores of {_shown(diverged, ' and ')} are NaN to the end: find out whether the model or its "
            "evaluation broke, since going on adds no score."
        ] = None
    if short := [name for name in ended if name not in diverged]:
        assert results.comparison is not None
        of = f" of {_shown(short, ' and ')}" if set(short) <= set(results.comparison.footing.own) else ""
        due = f"{compute_text(_due(results))} {results.plan.compute_name}"
        said[f"Runs{of} ended before {due}: continue them first."] = None
    for side in _sides(_because("sparse", found)):
        at = f"{compute_text(_due(results))} {results.plan.compute_name}"
        said[
            f"{side.name} has too few evaluations up to {at} for a level, and neither seeds nor budget add any there: "
            "evaluate it more often."
        ] = None
    for side in _sides(_because("flat", found)):
        questions = _listed(_questions([one for one in _because("flat", found) if one.side is side]))
        said[f"{side.name} does not rise, so neither seeds nor budget will decide {questions}."] = None
    for one in _because("apart", found):
        said[
            f"The seeds of {one.line.name} lie too far apart: its level would take about {one.seeds:,}. Look for what "
            "sets them apart."
        ] = None
    more = len(said) - MOST_CAUSES_SAID
    return [*list(said)[:MOST_CAUSES_SAID], *([f"{more} more like these."] if more > 0 else [])]


def _sides(found: Iterable[Open]) -> list[VariantResult]:
    return list({one.side.name: one.side for one in found}.values())


def _because(why: WHY, found: Iterable[Open]) -> list[Open]:
    return [one for one in found if one.why == why]


def _questions(found: Iterable[Open]) -> list[str]:
    return list(dict.fromkeys(one.question for one in found))


def _with_reference(results: Results, found: Iterable[Open]) -> list[VariantResult]:
    """The lines of the variants in question and of the reference, each once."""
    names = {one.line.name for one in found} | {results.plan.reference}
    return [line for line in _lines(results) if line.name in names]


def _named(results: Results, lines: Sequence[VariantResult]) -> str:
    reference = results.plan.reference
    return f"{_shown([line.name for line in lines if line.name != reference])} and {reference}"


def _shown(names: Sequence[str], between: str = ", ") -> str:
    return between.join(names) if len(names) <= MOST_NAMED_OPEN else f"{len(names)} variants"


def _price(results: Results, num_runs: int) -> str:
    return f"{compute_text(num_runs * results.plan.budget_gpu_hours)} more {results.plan.hours_name}"


def _lines(results: Results) -> Sequence[VariantResult]:
    return results.comparison.variants if results.comparison else ()


def _is_provisional(results: Results) -> bool:
    return len(_lines(results)) > 1 and results.comparison is not None and results.comparison.is_provisional


def advice_for(results: Results, name: str) -> str:
    """Advice on one variant, for its line in a table: `level: 5 seeds; ceiling: twice the budget`."""
    line = results.compared(name)
    if line is None:
        return ""
    if any(answer.verdict == PROVISIONAL for answer in line.answers.values()):
        return "a second seed"
    spoiled = _spoiled(results)
    said = [(one.question, _in_a_cell(one, spoiled)) for one in open_questions(results) if one.line.name == name]
    return "; ".join(f"{question}: {what}" for question, what in said)


def _in_a_cell(one: Open, spoiled: Mapping[str, Sequence[Remark]]) -> str:
    of = "" if one.side is one.line else f" of {one.side.name}"
    match one.why:
        case "seeds":
            return f"{one.seeds} seeds"
        case "budget":
            return "twice the budget"
        case "spoiled":
            return _spoiled_said(spoiled[one.side.name], of)
        case "short":
            return "runs ended early"
        case "sparse":
            return f"more evaluations{of}"
        case "flat":
            return f"{one.side.name} does not rise"
        case "apart":
            return "seeds too far apart"


def _listed(questions: Sequence[str]) -> str:
    named = [f"the {question}" for question in questions]
    return " and ".join(named) if len(named) < 3 else f"{', '.join(named[:-1])} and {named[-1]}"
