"""Advice for settling the open questions of a comparison, from its intervals.

An interval with both ends shrinks at least with the square root of the number of seeds. An interval without an end
needs more compute, since the readings end too near the bend.
"""

import math
from collections.abc import Sequence

from ablations.answers.answer import CANNOT_TELL, PROVISIONAL, Answer
from ablations.answers.compare import VariantResult
from ablations.findings.design_options import design_command, seeds_of
from ablations.findings.results import Results

WANTED_SEEDS = 3
"""Number of seeds to propose if each variant has one."""
MOST_SEEDS = 10
"""Limit on proposed seeds, since compute helps more beyond it."""


def seeds_needed(answer: Answer, num_seeds: int) -> int | None:
    """The m with h sqrt(n / m) <= widest; None if no number of seeds suffices, for example if an end is missing."""
    half_width = answer.question.half_width(answer.lo, answer.hi)
    if math.isinf(half_width):
        return None
    needed = math.ceil(num_seeds * (half_width / answer.question.widest) ** 2)
    return max(needed, num_seeds + 1) if needed <= MOST_SEEDS else None


def undecided(line: VariantResult) -> list[Answer]:
    """The undecided answers of a variant."""
    return [answer for answer in line.answers.values() if answer.verdict == CANNOT_TELL]


def advice(results: Results) -> str:
    """Advice for the whole comparison, with the command that lists designs; empty if no question is open."""
    if is_unfinished(results):
        return ""
    if _is_provisional(results):
        if results.sweep is None:
            return "One seed decides nothing: add a second seed for every variant."
        again = f"write `seeds: {_more_seeds(results)}` in the sweep file and run `{results.plan.command}` again"
        return f"One seed decides nothing: {again}."
    enough, by_compute = _needed(results)
    said = []
    if enough:
        now = min(line.num_seeds for line in _lines(results))
        said.append(f"To decide {_listed(list(enough))}: {max(enough.values())} seeds instead of {now}.")
    if by_compute:
        said.append(f"To decide {_listed(by_compute)}: at least twice the budget.")
    if said and results.sweep:
        said.append(f"`{design_command(results.plan)}` shows what each design could detect.")
    return " ".join(said)


def short_advice(results: Results) -> str:
    """The same on one line: `To decide level, compute: 6 seeds; ceiling: at least twice the budget.`"""
    if is_unfinished(results):
        return ""
    if _is_provisional(results):
        more = f"`seeds: {_more_seeds(results)}`" if results.sweep else "a second seed for every variant"
        return f"One seed decides nothing; {more} would."
    enough, by_compute = _needed(results)
    said = [f"{', '.join(enough)}: {max(enough.values())} seeds"] if enough else []
    said += [f"{', '.join(by_compute)}: at least twice the budget"] if by_compute else []
    return f"To decide {'; '.join(said)}." if said else ""


def is_unfinished(results: Results) -> bool:
    """True if runs have not reached the budget, so that what would decide an open question is not known yet."""
    return any(remark.kind == "unfinished" for remark in results.remarks)


def _lines(results: Results) -> Sequence[VariantResult]:
    return results.comparison.variants if results.comparison else ()


def _is_provisional(results: Results) -> bool:
    return len(_lines(results)) > 1 and results.comparison is not None and results.comparison.is_provisional


def _more_seeds(results: Results) -> list[int]:
    return list(seeds_of(sorted({run.seed for run in results.plan.runs}), WANTED_SEEDS))


def _needed(results: Results) -> tuple[dict[str, int], list[str]]:
    """The seeds that would decide each open question, and the questions that only more compute would decide."""
    lines = _lines(results)
    num_seeds = min((line.num_seeds for line in lines), default=0)
    seeds = seeds_by_question([one for line in lines for one in undecided(line)], num_seeds)
    enough = {question: number for question, number in seeds.items() if number is not None}
    return enough, [question for question in seeds if question not in enough]


def advice_for(line: VariantResult) -> str:
    """Advice for one variant, for its line of a table: `level: 5 seeds; ceiling: twice the budget`."""
    if any(answer.verdict == PROVISIONAL for answer in line.answers.values()):
        return "a second seed"
    needed = [(one.question.name, seeds_needed(one, line.num_seeds)) for one in undecided(line)]
    return "; ".join(f"{question}: {f'{seeds} seeds' if seeds else 'twice the budget'}" for question, seeds in needed)


def seeds_by_question(open_ones: Sequence[Answer], num_seeds: int) -> dict[str, int | None]:
    """The number of seeds that the widest interval needs, by question; None if one of its intervals needs compute."""
    found: dict[str, int | None] = {}
    for one in open_ones:
        needed, name = seeds_needed(one, num_seeds), one.question.name
        before = found.get(name, 0)
        found[name] = None if needed is None or before is None else max(needed, before)
    return found


def _listed(questions: Sequence[str]) -> str:
    named = [f"the {question}" for question in questions]
    return " and ".join(named) if len(named) < 3 else f"{', '.join(named[:-1])} and {named[-1]}"
