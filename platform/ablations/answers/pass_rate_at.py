"""The level at one compute of a forecast: the question whose spread its difference needs."""

from collections.abc import Sequence
from dataclasses import replace

from ablations.answers.answer import Question
from ablations.answers.level import compared_at, levels_of
from ablations.answers.questions import LEVEL
from ablations.answers.repeats import Repeats
from ablations.fit.result import Fit


def pass_rate_at(compute: float) -> Question:
    """Question: which variant has the higher level at this compute, or at the compute that all runs have reached?"""

    def numbers(fits: Sequence[Fit], baseline: Sequence[Fit], law: str) -> Repeats | None:
        return levels_of(fits, min(compute, *(compared_at(some) for some in (fits, baseline) if some)))

    return replace(LEVEL, repeats=numbers)
