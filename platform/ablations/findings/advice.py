"""Advice for settling the open questions of a comparison, by what keeps each of them open.

A collapsed or fallen seed needs more seeds beside it, or a fix; runs that ended early need the rest of their budget; a
curve that
does not rise has no ceiling that compute could find; seeds that lie far apart need a look, not a budget. Of the rest,
an interval with both ends shrinks at least with the square root of the number of seeds, and one without an end needs
more compute, since the readings end too near the bend.
Every price is that of the variants in question and of the reference, not of the whole study.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ablations.answers.answer import CANNOT_TELL, PROVISIONAL, Answer
from ablations.answers.compare import VariantResult
from ablations.answers.footing import NEARLY
from ablations.answers.questions import LEVEL
from ablations.findings.design_options import design_command, seeds_of
from ablations.findings.remark import Remark
from ablations.findings.results import Results
from ablations.fit.asymptote import WITHOUT_RISE
from ablations.text import compute_text, counted

WANTED_SEEDS = 3
"""Number of seeds to propose if each variant has one."""
MOST_SEEDS = 10
"""Limit on proposed seeds; beyond it, more compute helps more."""
MOST_NAMED_OPEN = 2
"""Limit on the variants that a sentence names; beyond it they are only counted."""
MOST_CAUSES_SAID = 3
"""Limit on the sentences about causes."""
WHY = Literal["spoiled", "short", "flat", "budget", "seeds", "apart"]
"""What keeps a question open: spoiled seeds, runs that ended early, a curve without a rise, too little compute, too few
seeds, or seeds so far apart that no affordable number of them helps."""


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
    spoiled = _spoiled(results)
    due = _due(results)
    return [_open(line, reference, answer, spoiled, due) for line in lines for answer in undecided(line)]


def _due(results: Results) -> float:
    """The compute at which variants were to be read; of another trainer, whose budget is unknown, at which they are."""
    assert results.comparison is not None
    return results.comparison.footing.compute if results.plan.imported else results.due


def _open(
    line: VariantResult, reference: VariantResult, answer: Answer, spoiled: Mapping[str, Sequence[Remark]], due: float
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


def _spoiled_said(remarks: Sequence[Remark], of: str = "") -> str:
    """`1 of 5 seeds of ratio-4.1 collapsed`."""
    return " and ".join(f"{len(one.runs)} of {counted(one.num_runs, 'seed')}{of} {one.kind}" for one in remarks)


def advice(results: Results) -> str:
    """Advice for the whole comparison, with the command that lists designs; empty if no question is open."""
    if is_unfinished(results):
        return ""
    if _is_provisional(results):
        if results.plan.imported:
            return "One seed cannot separate variants: add a second seed for every variant."
        more = _more_seeds(results)
        first = f"write `seeds: {more}` in the sweep file and " if more else ""
        return f"One seed cannot separate variants: {first}run `{results.plan.command}` again."
    found = open_questions(results)
    said = []
    if some := _because("seeds", found):
        now = min(one.line.num_seeds for one in some)
        most = max(one.seeds for one in some)
        said.append(f"{most} seeds instead of {now} would settle {_listed(_questions(some))}.")
    if some := _because("budget", found):
        said.append(f"At least twice the budget would settle {_listed(_questions(some))}.")
    if said and not results.plan.imported:
        said.append(f"`{design_command(results.plan)}` shows what each design could detect.")
    return " ".join([*said, *_causes_said(results, found)])


def short_advice(results: Results) -> str:
    """The advice in brief: `6 seeds would settle the level and the compute. At least twice the budget would settle the
    ceiling.`"""
    if is_unfinished(results):
        return ""
    if _is_provisional(results):
        seeds = [] if results.plan.imported else _more_seeds(results)
        more = f"`seeds: {seeds}`" if seeds else "a second seed for every variant"
        return f"One seed cannot separate variants; {more} would."
    found = open_questions(results)
    said = []
    if some := _because("seeds", found):
        said.append(f"{max(one.seeds for one in some)} seeds would settle {_listed(_questions(some))}.")
    if some := _because("budget", found):
        said.append(f"At least twice the budget would settle {_listed(_questions(some))}.")
    return " ".join([*said, *_causes_said(results, found)])


def priced_advice(results: Results) -> list[str]:
    """Sentences for the headline: what would decide the open questions, with the compute that it costs."""
    if results.comparison is None or results.comparison.is_provisional or is_unfinished(results):
        return []
    found = open_questions(results)
    said = []
    for why in ("seeds", "budget"):
        if some := _because(why, found):
            lines = _with_reference(results, some)
            now = min(one.num_seeds for one in lines)
            most = max(one.seeds for one in some)
            more = sum(max(most - one.num_seeds, 0) for one in lines)
            runs = more if why == "seeds" else sum(one.num_seeds for one in lines)
            what = f"{most} seeds instead of {now}" if why == "seeds" else "At least twice the budget"
            settled = _listed(_questions(some))
            said.append(f"{what} of {_named(results, lines)} would settle {settled}, for {_price(results, runs)}.")
    return [*said, *_causes_said(results, found)]


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
        else:
            price = f"{compute_text(num * results.plan.budget_gpu_hours)} {results.plan.hours_name} for {num}"
            said[f"{first} more seeds of it ({price}), or fix {what}."] = None
    if short := [side.name for side in _sides(_because("short", found))]:
        assert results.comparison is not None
        of = f" of {_shown(short, ' and ')}" if set(short) <= set(results.comparison.footing.own) else ""
        due = f"{compute_text(_due(results))} {results.plan.compute_name}"
        said[f"Runs{of} ended before {due}: train them on first."] = None
    for side in _sides(_because("flat", found)):
        questions = _listed(_questions([one for one in _because("flat", found) if one.side is side]))
        said[f"{side.name} does not rise, so neither seeds nor budget decide {questions}."] = None
    for one in _because("apart", found):
        said[
            f"Seeds lie too far apart for the level of {one.line.name}, which would take about {one.seeds:,}: look for "
            "what sets them apart."
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


def is_unfinished(results: Results) -> bool:
    """True if runs have not reached the budget, so it is too early to say what would decide an open question."""
    return any(remark.kind == "unfinished" for remark in results.remarks)


def _lines(results: Results) -> Sequence[VariantResult]:
    return results.comparison.variants if results.comparison else ()


def _is_provisional(results: Results) -> bool:
    return len(_lines(results)) > 1 and results.comparison is not None and results.comparison.is_provisional


def _more_seeds(results: Results) -> list[int]:
    """The seeds to write in the sweep file; empty if it has enough, of which too few count."""
    now = sorted({run.seed for run in results.plan.runs})
    return [] if len(now) >= WANTED_SEEDS else [*seeds_of(now, WANTED_SEEDS)]


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
        case "flat":
            return f"{one.side.name} does not rise"
        case "apart":
            return "seeds too far apart"


def _listed(questions: Sequence[str]) -> str:
    named = [f"the {question}" for question in questions]
    return " and ".join(named) if len(named) < 3 else f"{', '.join(named[:-1])} and {named[-1]}"
