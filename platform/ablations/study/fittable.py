"""Checks before training whether the runs of a study will have enough evaluations for a fit."""

import math
from collections.abc import Callable

from ablations.errors import FileProblem
from ablations.fit.options import MIN_READINGS
from ablations.study.expand import Study

COUNT_ROUNDING = 1e-9


def readings_before(budget: float, every: float) -> int:
    """Number of evaluations after step 0 in a run with this budget; budget and interval are in compute units."""
    return math.floor(budget / every + COUNT_ROUNDING)


def num_fittable(*, budget: float, every: float, fit_from: float = 0.0, fit_on: float = 1.0) -> int:
    """Number of evaluations after step 0 that a fit may use: those due from `fit_from` to `fit_on` of the budget.

    The window ends with the evaluation due at its end, since evaluations come a little after they are due.
    """
    last = min(math.ceil(fit_on * budget / every - COUNT_ROUNDING), readings_before(budget, every))
    first = max(1, math.ceil(fit_from * budget / every - COUNT_ROUNDING))
    return max(0, last - first + 1)


def too_few_readings(study: Study, budget: float | None = None) -> FileProblem | None:
    """The first variant with too few evaluations for a fit, and advice; None if all have enough.

    `budget` replaces the file's, in the scale's compute unit. The problem has its place in the sweep file.
    """
    window = study.sweep.budget
    budget = window.compute if budget is None else budget
    share = window.fit_on - window.fit_from
    of_window = "" if share == 1 else f" between fit_from {window.fit_from:g} and fit_on {window.fit_on:g}"
    for every in (variant.recipe.evaluation.every for variant in study.variants):
        number = num_fittable(budget=budget, every=every, fit_from=window.fit_from, fit_on=window.fit_on)
        if number < MIN_READINGS:
            least, most = MIN_READINGS * every / share, share * budget / MIN_READINGS
            return FileProblem(
                place=study.budget_at,
                found=f"found {budget:g}: evaluated every {every:g}, a run has {number} evaluations after step 0"
                f"{of_window}",
                right=f"a fit needs {MIN_READINGS}; must be at least {_rounded(least, math.ceil):g}, or "
                f"evaluation.every at most {_rounded(most, math.floor):g}",
            )
    return None


def _rounded(number: float, to: Callable[[float], int]) -> float:
    """Three digits of a number, rounded up or down: `_rounded(0.33333, math.ceil)` is 0.334."""
    digits = 2 - math.floor(math.log10(number))
    slack = 1 + (COUNT_ROUNDING if to is math.floor else -COUNT_ROUNDING)
    return round(to(number * 10.0**digits * slack) / 10.0**digits, digits)
