"""The comparison of fitted variants with the reference, with what other sweeps say on the run-to-run spread."""

from collections.abc import Collection, Sequence

from ablations.answers.compare import Comparison, compare
from ablations.answers.footing import Footing
from ablations.answers.repeats import NO_OTHERS, OtherSweeps
from ablations.findings.fitted_variant import FittedVariant
from ablations.findings.repeated_runs import of_other_sweeps
from ablations.home.started_sweep import StartedSweep


def compare_variants(
    sweep: StartedSweep, variants: Sequence[FittedVariant], footing: Footing | None, *, alone: bool
) -> Comparison | None:
    """Compare every variant that has a fit with the reference, at the compute chosen by `on_one_footing`; None while
    the reference has no fit. `alone` estimates the run-to-run spread from this sweep only.
    """
    fitted = {variant.name: variant for variant in variants if variant.fits}
    if sweep.plan.reference not in fitted:
        return None
    return compare(
        {name: variant.fits for name, variant in fitted.items()},
        {variant.name: variant.cost_gpu_hours for variant in variants},
        sweep.plan.reference,
        NO_OTHERS if alone or len(fitted) < 2 else _of_other_sweeps(sweep, fitted.values()),
        footing,
    )


def _of_other_sweeps(sweep: StartedSweep, fitted: Collection[FittedVariant]) -> OtherSweeps:
    """Evidence of other sweeps besides this one's seeds."""
    repeated = [variant for variant in fitted if len(variant.fits) > 1]
    own = {run.id for variant in repeated for run in variant.runs}
    return of_other_sweeps(sweep, own, sum(len(variant.fits) - 1 for variant in repeated))
