"""Several sweeps of one home folder together: the variants of all sweeps against the reference of the first one.

>>> loo, more = read_sweep(home, "loo"), read_sweep(home, "more")
>>> [variant.name for variant in together(loo, [more]).plan.variants]
['scalerl', 'loo-loss', 'loo-curriculum', 'loo-loss (more)']

A run counts once: runs that a variant of another sweep shares with earlier sweeps are left out. All runs are fitted in
the window of the first sweep.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ablations.errors import AblationsError
from ablations.findings.repeated_runs import some_recipe
from ablations.fit.options import FitOptions
from ablations.home.labels import FIRST_REFERENCE
from ablations.home.plan import PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.nearest_name import did_you_mean
from ablations.study.recipe_differences import ABSENT, recipe_differences
from scalerl.recipe.command import AnyRecipe, CommandRecipe
from scalerl.recipe.resolved import OUTSIDE

ACCOUNT = ("type", "device", "parameters_stand_for", "tokens_stand_for", "attention")
"""Settings of `cluster` that decide the compute charged for the same work."""


def together(sweep: StartedSweep, others: Iterable[StartedSweep]) -> StartedSweep:
    """The sweep with the variants of others added, as `name (sweep)`; shared runs are not added again.

    If another sweep has another reference, the changes of its variants are relative to the reference of the first.
    """
    others = tuple(others)
    variants = [*sweep.plan.variants]
    held = {run.id for variant in variants for run in variant.runs}
    for other in others:
        for variant in _told_of(sweep, other):
            if runs := tuple(run for run in variant.runs if run.id not in held):
                held |= {run.id for run in runs}
                variants.append(replace(variant, name=f"{variant.name} ({other.name})", runs=runs))
    ceilings = [FitOptions(**one.plan.fit).ceiling for one in (sweep, *others)]
    highest = None if None in ceilings else max(one for one in ceilings if one is not None)
    plan = replace(sweep.plan, variants=tuple(variants), fit={**sweep.plan.fit, "ceiling": highest})
    return replace(sweep, plan=plan, beside=tuple(other.name for other in others))


def with_baseline(sweep: StartedSweep, baseline: str) -> StartedSweep:
    """The sweep with another variant as the reference; AblationsError if there is no such variant."""
    names = [variant.name for variant in sweep.plan.variants]
    if baseline not in names:
        raise AblationsError(
            f"unknown variant '{baseline}' of {sweep.title}; {did_you_mean(baseline, names, 'variants')}"
        )
    notes = tuple(one for one in sweep.plan.notes if one != FIRST_REFERENCE.format(sweep.plan.reference))
    return replace(sweep, plan=replace(sweep.plan, reference=baseline, notes=notes))


def check_together(sweeps: Sequence[StartedSweep]) -> None:
    """Raise AblationsError if a sweep is named twice or cannot be compared with the first."""
    names = [sweep.name for sweep in sweeps]
    if twice := [name for number, name in enumerate(names) if name in names[:number]]:
        raise AblationsError(f"sweep '{twice[0]}' is named twice; name each sweep once")
    for other in sweeps[1:]:
        if why := why_apart(sweeps[0], other):
            raise AblationsError(f"sweep '{other.name}' cannot be compared with '{sweeps[0].name}': {why}")


def why_apart(sweep: StartedSweep, other: StartedSweep) -> str:
    """The reason why two sweeps cannot be compared; empty if they can.

    Recipes are compared once a run of each reference has started.
    """
    ours, theirs = sweep.plan, other.plan
    if ours.scale != theirs.scale:
        return f"its scale is {theirs.scale}, not {ours.scale}"
    if ours.compute_name != theirs.compute_name:
        return f"its compute is counted in {theirs.compute_name}, not in {ours.compute_name}"
    # Plans of earlier versions lack newer settings. Of two ceilings the higher one limits all curves.
    options, others = (FitOptions(**plan.fit).model_dump(exclude={"ceiling"}) for plan in (ours, theirs))
    if unlike := [f"fit.{name}" for name, value in options.items() if others[name] != value]:
        return f"its curves are fitted with other settings ({', '.join(unlike)})"
    recipe, another = some_recipe(sweep, ours.reference), some_recipe(other, theirs.reference)
    return "" if recipe is None or another is None else _why_recipes_apart(recipe, another)


def _why_recipes_apart(ours: AnyRecipe, theirs: AnyRecipe) -> str:
    if isinstance(ours, CommandRecipe) or isinstance(theirs, CommandRecipe):
        # Other code, or another command, measures in another way; configurations are what a study varies.
        return (
            "" if ours.canonical("trainer") == theirs.canonical("trainer") else "it runs another command or other code"
        )
    if ours.canonical("tasks") != theirs.canonical("tasks"):
        return "its tasks and held-out prompts are different"
    clusters = [recipe.canonical("cluster")["cluster"] for recipe in (ours, theirs)]
    if unlike := [name for name in ACCOUNT if clusters[0].get(name) != clusters[1].get(name)]:
        return (
            f"its runs charge different compute for the same work ({', '.join(f'cluster.{name}' for name in unlike)})"
        )
    return ""


def _told_of(sweep: StartedSweep, other: StartedSweep) -> Iterable[PlannedVariant]:
    """The variants of `other`, each with its changes relative to the reference of `sweep`."""
    ours, theirs = some_recipe(sweep, sweep.plan.reference), some_recipe(other, other.plan.reference)
    if ours is None or theirs is None or ours.canonical_json() == theirs.canonical_json():
        return other.plan.variants
    return [replace(one, overrides=_overrides(ours, other, one)) for one in other.plan.variants]


def _overrides(reference: AnyRecipe, sweep: StartedSweep, variant: PlannedVariant) -> dict[str, Any]:
    """The changed settings of a variant; those in the plan while no run of the variant can be read."""
    recipe = some_recipe(sweep, variant.name)
    if recipe is None:
        return variant.overrides
    differences = recipe_differences(reference, recipe)
    return {one.path: one.right for one in differences if one.right != ABSENT and one.path not in OUTSIDE}
