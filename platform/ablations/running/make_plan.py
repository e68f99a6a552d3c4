"""A study made into its plan: named, with its budget in GPU-hours, checked for what no run could do."""

import hashlib

from ablations.errors import AblationsError
from ablations.home.plan import Plan, PlannedRun, PlannedVariant
from ablations.steering.allocation import FIRST_EVALUATIONS, evaluation_gpu_hours, least_share
from ablations.study.expand import Study
from scalerl.recipe import ResolvedRecipe


def sweep_name(study: Study, scale_option: str | None) -> str:
    """The name of the sweep's folder: with `--scale` or `--set` it is another study than the file's own.

    `loo`, `loo@smoke` at another scale, `loo+1f0c9a` with the settings whose hash that is.
    """
    name = study.sweep.name
    if scale_option not in (None, study.sweep.scale):
        name += f"@{study.scale}"
    if study.sets:
        name += "+" + hashlib.sha256("\n".join(sorted(study.sets)).encode()).hexdigest()[:6]
    return name


def make_plan(study: Study, name: str, *, budget: float | None, command: str) -> Plan:
    """The plan of a study; `budget` replaces the file's, both in the scale's compute unit."""
    unit = study.reference.recipe.compute_unit_gpu_hours
    compute = (study.sweep.budget.compute if budget is None else budget) * unit
    for variant in study.variants:
        check_horizon(f"sweep '{study.sweep.name}', variant '{variant.name}'", variant.recipe, compute / unit)
    stop, total = study.sweep.stop, study.sweep.budget.total
    runs: dict[str, list[PlannedRun]] = {}
    for run in study.runs:
        runs.setdefault(run.variant, []).append(PlannedRun(seed=run.seed, id=run.id))
    return Plan(
        sweep=name,
        doc=study.sweep.doc,
        command=command,
        reference=study.reference.name,
        scale=study.scale,
        compute_unit_gpu_hours=unit,
        compute_name=study.reference.recipe.cluster.compute_name,
        budget_gpu_hours=compute,
        fit_from_gpu_hours=study.sweep.budget.fit_from * compute,
        fit_to_gpu_hours=study.sweep.budget.fit_on * compute,
        fit=study.sweep.fit.model_dump(),
        total_gpu_hours=None if total is None else checked_total(study, total * unit, compute),
        stop=stop and stop.model_dump(),
        search=study.space is not None,
        published={variant: fit.model_dump() for variant, fit in study.sweep.published.items()},
        claims=tuple(claim.model_dump() for claim in study.sweep.claims),
        variants=tuple(
            PlannedVariant(name=variant.name, overrides=variant.overrides, runs=tuple(runs[variant.name]))
            for variant in study.variants
        ),
    )


def check_horizon(name: str, recipe: ResolvedRecipe, compute: float) -> None:
    """Raise AblationsError where the learning rate of what `name` says would be 0 before its budget is spent."""
    try:
        recipe.check_budget(compute)
    except ValueError as error:
        raise AblationsError(f"{name}: {error}") from None


def checked_total(study: Study, total: float, compute: float) -> float:
    """The GPU-hours of all runs together; AblationsError when too few for a first share, or as many as without it."""
    recipe, num_runs = study.reference.recipe, len(study.runs)
    fit_from = study.sweep.budget.fit_from * compute
    least, whole = num_runs * least_share(every=evaluation_gpu_hours(recipe), fit_from=fit_from), num_runs * compute
    if not least <= total < whole:
        unit = recipe.compute_unit_gpu_hours
        raise AblationsError(
            f"sweep '{study.sweep.name}': budget.total: found {total / unit:g}; must be at least {least / unit:g}, "
            f"so that each of {num_runs} runs has {FIRST_EVALUATIONS} evaluations to be judged by, and below "
            f"{whole / unit:g}, which gives each its compute of {compute / unit:g} without any sharing"
        )
    return total
