"""Turns a study into its plan: with a name, its budget in GPU-hours, and checks that its runs are possible."""

import hashlib
from collections.abc import Iterable
from typing import Any

from ablations.errors import AblationsError
from ablations.home.plan import Plan, PlannedRun, PlannedVariant
from ablations.study.expand import Study
from ablations.terminal.short_names import meant
from scalerl.credentials import values_without_secrets
from scalerl.recipe.command import AnyRecipe


def sweep_name(study: Study, scale_option: str | None) -> str:
    """The name of the sweep's folder. `--scale` and `--set` make a study different from the file's own.

    For example `loo`, `loo@smoke` at another scale, and `loo+1f0c9a` with the hash of the settings.
    """
    name = study.sweep.name
    if scale_option not in (None, study.sweep.scale):
        name += f"@{study.scale}"
    if study.sets:
        name += "+" + hashlib.sha256("\n".join(sorted(study.sets)).encode()).hexdigest()[:6]
    return name


def make_plan(
    study: Study, name: str, *, budget: float | None, command: str, folder: str = "", is_shown_only: bool = False
) -> Plan:
    """The plan of a study; `budget` replaces the file's, both in the scale's compute unit. `command` is the one that
    trains it, `folder` as of `folder_given`.

    A plan that is only shown does not build the task, so its highest possible pass rate stays unknown.
    """
    unit = study.reference.recipe.compute_unit_gpu_hours
    compute = (study.sweep.budget.compute if budget is None else budget) * unit
    for variant in study.variants:
        check_horizon(f"sweep '{study.sweep.name}', variant '{variant.name}'", variant.recipe, compute / unit)
    stop = study.sweep.stop
    runs: dict[str, list[PlannedRun]] = {}
    for run in study.runs:
        runs.setdefault(run.variant, []).append(PlannedRun(seed=run.seed, id=run.id))
    return Plan(
        sweep=name,
        doc=study.sweep.doc,
        command=command,
        folder=folder,
        reference=study.reference.name,
        scale=study.scale,
        compute_unit_gpu_hours=unit,
        compute_name=study.reference.recipe.compute_name,
        budget_gpu_hours=compute,
        fit_from_gpu_hours=study.sweep.budget.fit_from * compute,
        fit_to_gpu_hours=study.sweep.budget.fit_on * compute,
        fit=study.sweep.fit.model_dump() | ({} if is_shown_only else {"ceiling": study.ceiling}),
        stop=stop and stop.model_dump(),
        notify=study.sweep.notify and study.sweep.notify.model_dump(),
        search=study.space is not None,
        published={meant(variant, runs): fit.model_dump() for variant, fit in study.sweep.published.items()},
        claims=tuple(_of_variants(claim.model_dump(), runs) for claim in study.sweep.claims),
        variants=tuple(
            PlannedVariant(
                name=variant.name,
                overrides=values_without_secrets(variant.overrides),
                runs=tuple(runs[variant.name]),
                axes=dict(variant.axes),
            )
            for variant in study.variants
        ),
    )


def _of_variants(claim: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The claim with the study's names of variants, which are short for a grid."""
    named = {key: meant(claim[key], names) for key in ("variant", "against") if claim[key]}
    return claim | named


def check_horizon(name: str, recipe: AnyRecipe, compute: float) -> None:
    """Raise AblationsError if the learning rate of `name` would reach 0 before the budget is spent."""
    try:
        recipe.check_budget(compute)
    except ValueError as error:
        raise AblationsError(f"{name}: {error}") from None
