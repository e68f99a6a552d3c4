"""The finished runs of a sweep, and what they teach its forecasts.

The errors of a variant's forecasts are saved beside the sweep, in a file named by its finished curves, the settings of
the fit and the code, so that only variants with a newly finished run are fitted again.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

from ablations.answers.calibration import Calibration, PastError
from ablations.answers.footing import NEARLY
from ablations.answers.past_forecasts import past_errors
from ablations.findings.results import Results
from ablations.fit.curve import Curve
from ablations.readings.kept import kept_tree
from ablations.readings.run_reading import code_of_readings


@dataclass(frozen=True, kw_only=True)
class PastErrors:
    """The errors of the forecasts of a variant's finished runs, as they are saved."""

    errors: tuple[PastError, ...]


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
    errors = [
        error for name, curves in finished_curves(results).items() for error in _kept_errors(results, name, curves)
    ]
    found = Calibration(errors=tuple(errors))
    return replace(found, is_carried=found.prefers_carried)


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
