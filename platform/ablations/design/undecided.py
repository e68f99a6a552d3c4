"""What would tell where a comparison cannot: a sentence for all of it, from the intervals that it has.

An interval of known ends shrinks at least with the square root of the number of seeds. One without an end needs more
compute: the readings end too near to the bend.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ablations.design.command import design_command
from ablations.design.half_widths import Question
from ablations.verdict.compare import VariantResult
from ablations.verdict.results import Results
from ablations.verdict.rules import WIDEST_LEVEL_MARGIN, WIDEST_MARGIN, WIDEST_RATIO

CANNOT_TELL = "cannot tell"
MOST_SEEDS = 10
"""More are not proposed: compute buys more."""


@dataclass(frozen=True, kw_only=True)
class Undecided:
    """A verdict that cannot tell: its half-width and the widest that could; None where an end is missing."""

    question: Question
    half_width: float | None
    widest: float

    def seeds_needed(self, num_seeds: int) -> int | None:
        """h sqrt(n / m) <= widest; None where no number of seeds is enough."""
        if self.half_width is None:
            return None
        needed = math.ceil(num_seeds * (self.half_width / self.widest) ** 2)
        return max(needed, num_seeds + 1) if needed <= MOST_SEEDS else None


def undecided(line: VariantResult) -> Iterator[Undecided]:
    """The verdicts of a variant that cannot tell."""
    if line.level_difference == CANNOT_TELL:
        half_width = _half(line.delta_level_lo, line.delta_level_hi)
        yield Undecided(question="level", half_width=half_width, widest=WIDEST_LEVEL_MARGIN)
    if line.difference == CANNOT_TELL:
        half_width = _half(line.delta_A_lo, line.delta_A_hi)
        yield Undecided(question="ceiling", half_width=half_width, widest=WIDEST_MARGIN)
    if line.efficiency == CANNOT_TELL:
        lo, hi = line.compute_ratio_lo, line.compute_ratio_hi
        half_width = math.log(hi / lo) / 2 if lo and hi else None
        yield Undecided(question="compute", half_width=half_width, widest=math.log(WIDEST_RATIO) / 2)


def what_would_tell(results: Results) -> str:
    """One sentence for the whole comparison, with the command that shows designs; empty where every verdict tells."""
    lines = results.comparison.variants if results.comparison else ()
    open_ones = [one for line in lines for one in undecided(line)]
    if not open_ones:
        return ""
    num_seeds = min(line.num_seeds for line in lines)
    said = []
    seeds = _seeds_by_question(open_ones, num_seeds)
    enough: dict[Question, int] = {question: number for question, number in seeds.items() if number is not None}
    if enough:
        said.append(f"{max(enough.values())} seeds instead of {num_seeds} for {_listed(list(enough))}")
    by_compute: list[Question] = [question for question in seeds if question not in enough]
    if by_compute:
        said.append(f"twice the budget or more for {_listed(by_compute)}")
    command = f"; `{design_command(results.plan)}` says what each design would see" if results.plan.scale else ""
    return f"What would tell where it cannot: {'; '.join(said)}{command}."


def what_would_tell_of(line: VariantResult) -> str:
    """The same of one variant, for its line of a table: `level: 5 seeds; ceiling: twice the budget`."""
    needed = [(one.question, one.seeds_needed(line.num_seeds)) for one in undecided(line)]
    return "; ".join(f"{question}: {f'{seeds} seeds' if seeds else 'twice the budget'}" for question, seeds in needed)


def _seeds_by_question(open_ones: list[Undecided], num_seeds: int) -> dict[Question, int | None]:
    """The seeds that its widest interval needs, by question; None where one of its intervals needs compute."""
    found: dict[Question, int | None] = {}
    for one in open_ones:
        needed = one.seeds_needed(num_seeds)
        before = found.get(one.question, 0)
        found[one.question] = None if needed is None or before is None else max(needed, before)
    return found


def _half(lo: float | None, hi: float | None) -> float | None:
    return None if lo is None or hi is None else (hi - lo) / 2


def _listed(questions: Sequence[Question]) -> str:
    return " and ".join(questions) if len(questions) < 3 else f"{', '.join(questions[:-1])} and {questions[-1]}"
