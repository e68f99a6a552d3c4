"""Ceilings of several runs under one unknown law that all of them share.

The weight of a family differs from run to run, though the runs share a law: readings that end nearer to the bend say
less about it. If each fit kept its own weights, a slower variant would keep the families that its readings do not
reject, end higher under them, and pass for a higher ceiling. So each family has one weight for all runs of a
difference, the average of their weights. The benchmark `pairs` in benchmarks/law_doubt.py shows the effect.

A run without an upper end counts with the level it has reached, which rests on no law (`differences`). Such a run has
no say in the law of the others, since it would give families without a ceiling to a reference that rejects them.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from ablations.fit.engine.family import FAMILIES, SIGMOID
from ablations.fit.result import Fit


def law_weights(fits: Sequence[Fit]) -> dict[str, float]:
    """The weight of each family for all of these fits: w_k = mean of the weight of family k over the fits with an upper
    end, or over all fits if none has one. Families without weight are left out.
    """
    having = [fit for fit in fits if fit.ceiling.hi is not None] or fits
    means = mean_law_weights([fit.alternatives.weights for fit in having])
    return {name: weight for name, weight in means.items() if weight > 0}


def mean_law_weights(weights: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean weight of each family, by name, in the order of FAMILIES; empty without weights."""
    return {one.name: float(np.mean([each[one.name] for each in weights])) for one in FAMILIES if weights}


@lru_cache(maxsize=4096)
def ceiling_under(fit: Fit, law: str) -> tuple[float, float]:
    """A of one run under a family, and its variance given the readings; under eq. 1 if the fit rejects the family."""
    other = next((one for one in fit.alternatives.others if one.family == law), None)
    if law == SIGMOID.name or other is None:
        return fit.eq1_A, float(fit.draws.A.var())
    ceilings = other.ceilings.clip(max=fit.settings.highest)  # the family without a ceiling ends at the task's
    return float(np.median(ceilings)), float(ceilings.var())
