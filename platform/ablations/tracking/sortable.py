"""The numbers and verdicts of a fit for a sortable table: no row lacks A, A_lo, A_hi or level.

A table sorted by a number drops or misplaces rows that lack it. So A is the estimate if the readings bound it on both
sides, and otherwise its lower end, as in the output of `platform compare` ("A >= 0.53"); A_hi is then the highest
possible A. The tag `A_is` records the case. NaN stands for an unknown number and is sorted last.
"""

import math
from collections.abc import Sequence

import numpy as np

from ablations.answers.level import level_of
from ablations.findings.remarks import warnings_of_run
from ablations.findings.results import NO_FIT, FittedVariant, Results
from ablations.fit.asymptote import AsymptoteEstimate
from ablations.home.labels import Labels
from ablations.readings.fitted_run import FittedRun

HIGHEST = 1.0
"""The highest possible pass rate."""
ESTIMATE, LOWER_BOUND, NO_RISE = "estimate", "lower bound only", "no rise: its lower bound"
"""Values of the tag `A_is`; without a fit the value is `NO_FIT`."""


def numbers_of_variant(results: Results, name: str) -> dict[str, float]:
    """All numbers of a variant, always including A, A_lo, A_hi and level."""
    variant = results.variant(name)
    known = results.fit_numbers(name)
    always = _of_asymptote(results.asymptote(variant), results.plan) | {"level": level_so_far(variant.runs, results)}
    return always | {field: value for field, value in known.items() if field not in ("A", "A_lo", "A_hi")}


def numbers_of_run(results: Results, run: FittedRun) -> dict[str, float]:
    """A, A_lo, A_hi and level of one seed by itself."""
    return _of_asymptote(run.fit and run.fit.asymptote, results.plan) | {"level": level_so_far([run], results)}


def verdicts_of_variant(results: Results, name: str) -> dict[str, str]:
    """Tags of a variant: every verdict by itself, all of them in one line, the kind of its A, and the remarks on it."""
    variant, line = results.variant(name), results.compared(name)
    return {
        "verdict": results.verdict(name),
        **{f"verdict_{one.name}": line.answers[one.name].verdict if line else NO_FIT for one in results.questions},
        "verdict_fit": results.fit_verdict(name),
        "remarks": " ".join(one.text for one in results.remarks if not one.variants or name in one.variants) or "none",
        "A_is": kind_of_asymptote(results.asymptote(variant)),
    }


def verdicts_of_run(results: Results, variant: FittedVariant, run: FittedRun) -> dict[str, str]:
    """The verdicts on a seed's variant, with the kind of this seed's A and the warnings of this run."""
    own = "; ".join(warnings_of_run(run, results.plan.hours_name)) or "none"
    asymptote = run.fit and run.fit.asymptote
    return verdicts_of_variant(results, variant.name) | {"A_is": kind_of_asymptote(asymptote), "remarks": own}


def kind_of_asymptote(asymptote: AsymptoteEstimate | None) -> str:
    """The tag `A_is`."""
    if asymptote is None:
        return NO_FIT
    if not asymptote.rises:
        return NO_RISE
    return ESTIMATE if asymptote.is_bounded else LOWER_BOUND


def _of_asymptote(asymptote: AsymptoteEstimate | None, plan: Labels) -> dict[str, float]:
    if asymptote is None:
        return dict.fromkeys(("A", "A_lo", "A_hi"), math.nan)
    if asymptote.is_bounded and asymptote.hi is not None:
        return {"A": asymptote.A, "A_lo": asymptote.lo, "A_hi": asymptote.hi}
    return {"A": asymptote.lo, "A_lo": asymptote.lo, "A_hi": plan.fit_settings.ceiling or HIGHEST}


def level_so_far(runs: Sequence[FittedRun], results: Results) -> float:
    """The mean over the runs of the level at each one's own last reading; NaN without readings.

    If the variant is compared, the comparison's `level`, taken at equal compute, replaces this one.
    """
    levels = []
    for run in runs:
        if run.curve is None or not run.curve.compute.size:
            continue
        end = min(float(run.curve.compute[-1]), results.plan.fit_to_gpu_hours)
        level = level_of(run.curve, end)
        levels.append(math.nan if level is None else level.value)
    return float(np.mean(levels)) if levels else math.nan
