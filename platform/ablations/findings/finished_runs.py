"""The finished runs of a sweep, or of others of its scale while it has few, and what they teach its forecasts.

Of many runs the first of each variant teach, in the order of their seeds: as many as make 48 together, and at least
three of each. With w = n / (n + 4) more would change little.

The errors of a variant's forecasts are saved beside the sweep, in a file named by its finished curves, the settings of
the fit and the code, so that only variants with a newly finished run are fitted again.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import chain

import numpy as np

from ablations.answers.calibration import Calibration, PastError
from ablations.answers.footing import NEARLY
from ablations.answers.past_forecasts import past_errors
from ablations.findings.repeated_runs import SAME, some_recipe
from ablations.findings.results import Results
from ablations.fit.curve import Curve
from ablations.home.plan import Plan
from ablations.home.started_sweep import plans_of
from ablations.readings.fitted_run import read_run
from ablations.readings.kept import kept_tree
from ablations.readings.run_reading import code_of_readings, recipe_and_seed
from scalerl.recipe.command import AnyRecipe
from scalerl.run.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class PastErrors:
    """The errors of the forecasts of a variant's finished runs, as they are saved."""

    errors: tuple[PastError, ...]


ENOUGH = 12
"""Number of finished runs from which other sweeps of the scale are not asked."""
MOST_TEACHING, LEAST_OF_A_VARIANT = 48, 3
"""Number of finished runs of a sweep that teach, in equal parts of its variants, and the least of a variant."""
PAST = "past_forecasts"
"""Folder in that of a sweep."""


def finished_curves(results: Results) -> dict[str, list[Curve]]:
    """The curves of the runs that have reached the budget, by variant; of another trainer, that have come nearly as far
    as the longest.
    """
    plan = results.plan
    enough = plan.budget_gpu_hours / (NEARLY if plan.imported else 1.0)
    finished = {
        variant.name: [run.curve for run in variant.runs if run.curve is not None and run.cost_gpu_hours >= enough]
        for variant in results.variants
    }
    return {name: curves for name, curves in finished.items() if curves}


def calibration_of(results: Results) -> Calibration:
    """What the finished runs of a sweep teach its forecasts, whichever of its variants a page shows."""
    return _calibration(results.chosen_from or results)


@lru_cache(maxsize=4)
def _calibration(results: Results) -> Calibration:
    finished = finished_curves(results)
    most = max(LEAST_OF_A_VARIANT, math.ceil(MOST_TEACHING / max(len(finished), 1)))
    own = {name: _fitted_part(curves[:most], results.plan) for name, curves in finished.items()}
    others = _of_other_sweeps(results, ENOUGH - sum(map(len, own.values())))
    errors = [error for name, curves in chain(own.items(), others) for error in _kept_errors(results, name, curves)]
    found = Calibration(errors=tuple(errors))
    return replace(found, is_carried=found.prefers_carried)


def _of_other_sweeps(results: Results, wanted: int) -> Iterator[tuple[str, list[Curve]]]:
    """Finished runs of other sweeps of the scale on the same tasks and prompts, by variant, until there are enough; the
    last started sweep first."""
    sweep, seen = results.sweep, {run.id for run in results.runs}
    like = None if results.plan.imported else some_recipe(sweep)
    if like is None:
        return
    for plan in plans_of(sweep.home, sweep.plan.scale):
        settings = replace(plan.fit_settings, task=results.plan.fit_settings.task)
        for variant in plan.variants:
            if wanted <= 0:
                return
            runs = [run for run in variant.runs if run.id not in seen and _is_like(sweep.run(run.id), like)]
            seen |= {run.id for run in runs}
            read = (read_run(sweep.run(run.id), variant.name, run, settings) for run in runs)
            curves = [
                replace(run.curve, name=f"{plan.sweep}/{run.name}")
                for run in read
                if run.curve is not None and run.cost_gpu_hours >= plan.budget_gpu_hours
            ]
            wanted -= len(curves)
            if curves:
                yield f"{plan.sweep}/{variant.name}", _fitted_part(curves, plan)


def _fitted_part(curves: Sequence[Curve], plan: Plan) -> list[Curve]:
    """The curves up to the reading due at the end of the fitted window, beyond which a forecast must know nothing."""
    fit_to = plan.fit_settings.fit_to
    return [curve.first(int(np.searchsorted(curve.compute, fit_to)) + 1) for curve in curves]


def _is_like(folder: RunFolder, like: AnyRecipe) -> bool:
    made_with = recipe_and_seed(folder)
    return made_with is not None and made_with[0].canonical(*SAME) == like.canonical(*SAME)


def _kept_errors(results: Results, variant: str, curves: Sequence[Curve]) -> tuple[PastError, ...]:
    settings = results.plan.fit_settings
    digest = hashlib.sha256(json.dumps([code_of_readings(), variant, asdict(settings)]).encode())
    for curve in curves:
        digest.update(curve.name.encode() + curve.compute.tobytes() + curve.score.tobytes())
    path = results.sweep.folder / PAST / f"{digest.hexdigest()[:16]}.msgpack"
    found, _ = kept_tree(
        path,
        lambda: PastErrors(errors=tuple(past_errors(variant, curves, settings))),
        PastErrors,
        most=4 * len(results.variants),
    )
    return found.errors
