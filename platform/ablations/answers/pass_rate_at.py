"""The pass rate of each seed at one compute: its level up to the compute at which both variants are read, its fitted
curve beyond."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ablations.answers.answer import Question
from ablations.answers.differences import starts_of
from ablations.answers.footing import NEARLY
from ablations.answers.level import compared_at, levels_of
from ablations.answers.questions import LEVEL
from ablations.answers.repeats import Repeats
from ablations.fit.averaging import averaged_draws, successors
from ablations.fit.engine.family import SIGMOID
from ablations.fit.result import Fit


def pass_rate_at(compute: float) -> Question:
    """The question of which variant has the higher pass rate at this compute."""

    def numbers(fits: Sequence[Fit], baseline: Sequence[Fit], law: str) -> Repeats | None:
        reached = min(compared_at(some) for some in (fits, baseline) if some)
        if compute > NEARLY * reached:
            return predictions(fits, compute, law or SIGMOID.name)
        return levels_of(fits, min(compute, reached)) or predictions(fits, compute, law or SIGMOID.name)

    return replace(LEVEL, repeats=numbers, is_by_law=True)


def predictions(fits: Sequence[Fit], compute: float, law: str) -> Repeats:
    """The pass rate of each seed's curve at one compute under a family; under eq. 1 if the fit rejects the family. All
    seeds get their mean error, so that every seed weighs the same, as in a prediction.
    """
    found = [_prediction(fit, compute, law) for fit in fits]
    variance = float(np.mean([one for _, one in found]))
    return Repeats.of([value for value, _ in found], [variance] * len(found), starts_of(fits))


@lru_cache(maxsize=4096)
def _prediction(fit: Fit, compute: float, law: str) -> tuple[float, float]:
    rows = next((one.rows for one in successors(fit) if one.family == law), None)
    drawn = (fit.predict_draws(compute) if rows is None else averaged_draws(fit, compute)[rows])[:, 0]
    return float(np.median(drawn)), float(drawn.var())
