"""The numbers and verdicts of a fit for a sortable table: no row lacks A_lo or level.

A table sorted by a number drops or misplaces rows that lack it. A and A_hi are left out without an upper end or a rise,
as in every other output, so sort by A_lo. The tag `A_is` records the case.
NaN stands for an unknown number and is sorted last.
"""

import math
from collections.abc import Sequence

import numpy as np

from ablations.answers.level import level_of
from ablations.findings.fitted_variant import NO_FIT, FittedVariant
from ablations.findings.remarks import warnings_of_run
from ablations.findings.results import Results
from ablations.fit.asymptote import AsymptoteEstimate
from ablations.readings.fitted_run import FittedRun
from ablations.terminal.visible import made_visible

ESTIMATE, LOWER_BOUND, NO_RISE = "estimate", "lower bound only", "no rise"
"""Values of the tag `A_is`; without a fit the value is `NO_FIT`."""


def numbers_of_variant(results: Results, name: str) -> dict[str, float]:
    """All numbers of a variant, always including A_lo and level."""
    variant = results.variant(name)
    known = results.fit_numbers(name)
    counting = [run for run in variant.runs if run.name not in variant.short]
    always = _of_asymptote(results.asymptote(variant)) | {"level": level_so_far(counting, results)}
    return always | known


def numbers_of_run(results: Results, run: FittedRun) -> dict[str, float]:
    """A_lo and level of one seed by itself, and A with A_hi if they exist."""
    return _of_asymptote(run.fit and run.fit.asymptote) | {"level": level_so_far([run], results)}


def verdicts_of_variant(results: Results, name: str) -> dict[str, str]:
    """Tags of a variant: each verdict separately, all of them in one line, the kind of its A, and the remarks on it."""
    variant, line = results.variant(name), results.compared(name)
    remarks = [one.text for one in results.remarks if not one.variants or name in one.variants]
    return {
        "verdicts": results.verdicts(name),
        **{f"{one.name}_verdict": line.answers[one.name].verdict_said if line else NO_FIT for one in results.questions},
        "fit_verdict": results.fit_verdict(name),
        "seeds_counting": f"{variant.num_counting} of {len(variant.runs)}",
        "remarks": made_visible(" ".join(remarks)) or "none",
        "A_is": kind_of_asymptote(results.asymptote(variant)),
    }


def verdicts_of_run(results: Results, variant: FittedVariant, run: FittedRun) -> dict[str, str]:
    """The verdicts on a seed's variant, with the kind of this seed's A and the warnings of this run."""
    own = made_visible("; ".join(warnings_of_run(run, results.plan.hours_name))) or "none"
    asymptote = run.fit and run.fit.asymptote
    return verdicts_of_variant(results, variant.name) | {"A_is": kind_of_asymptote(asymptote), "remarks": own}


def kind_of_asymptote(asymptote: AsymptoteEstimate | None) -> str:
    """The tag `A_is`."""
    if asymptote is None:
        return NO_FIT
    if not asymptote.rises:
        return NO_RISE
    return ESTIMATE if asymptote.is_bounded else LOWER_BOUND


def _of_asymptote(asymptote: AsymptoteEstimate | None) -> dict[str, float]:
    if asymptote is None:
        return {"A_lo": math.nan}
    ends = {"A": asymptote.A, "A_lo": asymptote.lo, "A_hi": asymptote.hi}
    return {name: value for name, value in ends.items() if value is not None}


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
