"""Scores a trial by its fits: one number for each objective of a search.

`value` is for readers: None if the curve never reaches the score. `told` is for a sampler: always finite. A score out
of reach, or one that needs more than CAP times the budget, is reported as CAP times the budget rather than as a failed
trial, because samplers forget failed trials and propose them again. A larger penalty would flatten every other
difference for a Gaussian process.
"""

import math
from collections.abc import Sequence
from statistics import fmean, median_high
from typing import TYPE_CHECKING

from ablations.study.search_space import Asymptote, ComputeToReach, Objective, ScoreAt

if TYPE_CHECKING:
    from ablations.fit.result import Fit  # numpy is not needed to show what a search would do

CAP = 10.0
"""Upper limit of the compute reported to a sampler, in budgets; a forecast beyond it only means that the score is far
off."""
FLOOR = 1e-3
"""Lower limit of the compute reported to a sampler, in budgets, for a score that is met before RL."""


def is_maximised(objective: Objective) -> bool:
    """True if larger values are better."""
    return objective.type != "compute_to_reach"


def value(objective: Objective, fits: Sequence["Fit"], compute_unit_gpu_hours: float) -> float | None:
    """Mean of the objective over seeds, one fit per seed; compute is in modelled GPU-hours, as a geometric mean.

    A is that of `platform compare` and `platform fit`, over all families of curves that fit.
    """
    match objective:
        case Asymptote():
            return fmean(_ceiling(fit, objective) for fit in fits)
        case ScoreAt():
            compute = objective.budget * compute_unit_gpu_hours
            return fmean(float(fit.predict_draws(compute).mean()) for fit in fits)
        case ComputeToReach():
            # Infinite for a fit of whose draws at least half never reach the score.
            needed = [median_high(fit.compute_draws(objective.score).tolist()) for fit in fits]
            if not all(math.isfinite(compute) for compute in needed):
                return None
            return math.exp(fmean(math.log(compute) for compute in needed)) if all(needed) else 0.0


def told(objective: Objective, found: float | None, budget_gpu_hours: float) -> float:
    """The value for a sampler; compute as its logarithm, between FLOOR and CAP budgets."""
    if objective.type == "compute_to_reach":
        share = math.inf if found is None else found / budget_gpu_hours
        return math.log(min(max(share, FLOOR), CAP) * budget_gpu_hours)
    assert found is not None
    return found


def pareto_front(values: Sequence[Sequence[float]], maximised: Sequence[bool]) -> list[int]:
    """Positions of the values that no other value dominates (as good in everything and better in something)."""
    signed = [[one if up else -one for one, up in zip(point, maximised, strict=True)] for point in values]
    return [position for position, point in enumerate(signed) if not any(_beats(other, point) for other in signed)]


def title(objective: Objective) -> str:
    """A column heading: "A, lower end", "pass rate at 1.5", "compute to 0.6"."""
    match objective:
        case Asymptote():
            return "A, lower end" if objective.of == "lower" else "A"
        case ScoreAt():
            return f"pass rate at {objective.budget:g}"
        case ComputeToReach():
            return f"compute to {objective.score:g}"


def value_text(objective: Objective, found: float | None) -> str:
    """A value as shown: "0.612", "1830", "never"."""
    if found is None:
        return "never"
    return f"{found:.4g}" if objective.type == "compute_to_reach" else f"{found:.3f}"


def _ceiling(fit: "Fit", objective: Asymptote) -> float:
    """A or its lower end; of an A without an upper end the lower one, since A would be the prior's, not the curve's."""
    has_mean = objective.of == "mean" and fit.ceiling.hi is not None and fit.rises
    return fit.ceiling.estimate if has_mean else fit.ceiling.lo


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a >= b for a, b in zip(one, other, strict=True)) and list(one) != list(other)
