"""Turns a sweep file into runs.

>>> study = expand(Path("sweeps/loo.yaml"))
>>> [variant.name for variant in study.variants]
['scalerl', 'loo-off_policy', 'loo-loss', ...]
>>> study.runs[0].id
'3f0c9a1b2d4e'
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ablations.errors import FileError, FileProblem, Place
from ablations.files.lookup import find_file
from ablations.files.source import Source, read_yaml
from ablations.files.validation import validated
from ablations.nearest_name import did_you_mean
from ablations.study.draft import Draft
from ablations.study.forms import AxisValue, drafts, grid_values, possible_pairs
from ablations.study.override import Override, changes_of, overrides_in, vary
from ablations.study.pairs import TwoChanges
from ablations.study.program import check_overrides, command_reference
from ablations.study.resolve import asked_in_scale, planned_scale, resolve, unread
from ablations.study.resources import Asked, Resources, asked_in
from ablations.study.search_points import SearchSpace, search_space
from ablations.study.sweep import Sweep
from ablations.study.wandb_sweep import refuse_wandb_sweep
from ablations.terminal.short_names import meant, shown_names
from ablations.text import parts_of
from scalerl.credentials import is_hidden
from scalerl.recipe import ALL, KSmallest, ResolvedRecipe
from scalerl.recipe.command import AnyRecipe, CommandRecipe

TRIAL_PREFIX = "trial-"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One recipe of a study under its name.

    >>> Variant(name="batch=small", overrides={"batch.prompts": 32}, recipe=recipe)
    """

    name: str
    overrides: dict[str, Any]
    """Settings in which the variant differs from the reference: dotted path to the value set, with `{times: x}`
    computed."""
    recipe: AnyRecipe
    axes: Mapping[str, str] = field(default_factory=dict)
    """The variant's value on each axis that it combines; for the reference, its own value on each axis of the grid."""


@dataclass(frozen=True, kw_only=True)
class SweepRun:
    """One training run: `SweepRun(variant="loo-loss", seed=0, id="3f0c9a1b2d4e", recipe=recipe)`."""

    variant: str
    seed: int
    id: str
    recipe: AnyRecipe


@dataclass(frozen=True, kw_only=True)
class Study:
    """A sweep with all variants resolved, the reference first, and its runs ordered by variant, then seed."""

    sweep: Sweep
    scale: str
    """The scale in use: the one in `--scale`, else the sweep's; empty if the trainer is a program."""
    sets: tuple[str, ...]
    """Command-line settings, which apply to every variant."""
    variants: tuple[Variant, ...]
    runs: tuple[SweepRun, ...]
    asked: Asked
    """The scale's resources, overridden by the sweep's, with the place of each."""
    budget_at: Place
    """The place of the compute of each run in the file."""
    made: Mapping[str, Any] = field(default_factory=dict)
    """The scale's changes to the scale that it is made from; empty for a scale from a file."""
    possible_pairs: tuple[TwoChanges, ...] = ()
    """Every pair of changes that could be trained together; empty for a file without `pairs`."""
    space: SearchSpace | None = None
    """The space of a search; None for other studies. Each trial becomes a variant (`ablations.search`)."""

    @property
    def reference(self) -> Variant:
        """The variant with which all others are compared."""
        return self.variants[0]

    @property
    def pairs(self) -> list[TwoChanges]:
        """The names of both variants of every pair of changes trained together."""
        if not self.sweep.pairs:
            return []
        names = [variant.name for variant in self.variants]
        return [pair for name in names if (pair := parts_of(name, names)) is not None]

    @property
    def resources(self) -> Resources:
        """Slurm resources of each run under `--executor slurm`."""
        return self.asked.resources

    @cached_property
    def ceiling(self) -> float | None:
        """`fit.ceiling` of the file, else the highest pass rate that the task allows; None if nothing limits it.

        A search has no known limit, because its trials may have longer answers than its reference.
        """
        stated = self.sweep.fit.ceiling
        if stated is not None or self.space is not None:
            return stated
        return highest_of((one.recipe for one in self.variants), self.sweep.fit.task)


def highest_of(recipes: Iterable[AnyRecipe], task: str | None) -> float | None:
    """The highest limit among the recipes on the fitted task; None if any recipe has no known limit."""
    limits: dict[str, float] = {}
    for recipe in recipes:
        if not isinstance(recipe, ResolvedRecipe):
            return None
        key = f"{recipe.model.type} {recipe.tasks!r} {recipe.generation!r}"
        if key not in limits:
            limits[key] = known_ceiling(recipe, task)
    highest = max(limits.values(), default=1.0)
    return highest if highest < 1 else None


def known_ceiling(recipe: ResolvedRecipe, task: str | None) -> float:
    """The limit of one recipe on the fitted task, `task` None for its only task; 1 if no limit is known.

    `k_smallest` has one right answer to a prompt, and an answer longer than `generation.answer` is truncated. So the
    share of the held-out prompts whose answer fits limits every pass rate.
    """
    from scalerl.tasks import make_task
    from scalerl.tasks.lengths import highest_pass_rate
    from scalerl.tokens import make_tokenizer

    fitted = [one for one in recipe.tasks if task in (None, one.title)]
    if recipe.model.type == "pretrained" or len(fitted) != 1 or not isinstance(fitted[0], KSmallest):
        return 1.0
    tokenizer = make_tokenizer(recipe.model, thinks=recipe.generation.thinks)
    return highest_pass_rate(make_task(fitted[0], tokenizer), tokenizer, recipe.generation.answer) or 1.0


def expand(path: Path, *, scale: str | None = None, sets: Iterable[str] = (), with_files: bool = True) -> Study:
    """The study in a sweep file, optionally on another scale and with `path=value` settings for all variants.

    For a file with `scales`, the study at the first scale unless `scale` names another.

    With `with_files=False`, weights and data are not read; such a study can be planned but not trained.
    """
    source, sets = read_yaml(path), tuple(sets)
    _refuse_hidden(source)
    if not with_files:
        source = replace(source, data=unread(source.data))
    refuse_wandb_sweep(source, path.stem)
    sweep = validated(source, Sweep)
    base = overrides_in(source, ("base",)) if sweep.base else ()
    if sweep.trainer is not None:
        return _command_study(sweep, source, path, scale, sets, base)
    recipe_file = find_file("recipe", sweep.reference, named_at=source.place(("reference",)), sweep=path)
    wanted = scale or (*sweep.named_scales, sweep.scale)[0]
    family = sweep.family_of(wanted)
    if family is not None:
        scale_at = source.place(("scales", "of"))
    elif wanted in sweep.named_scales:
        scale_at = source.place(("scales", sweep.named_scales.index(wanted)))
    else:
        scale_at = Place(source=f"--scale {scale}") if scale else source.place(("scale",))
    if sweep.fixed_scale and scale not in (None, sweep.scale):
        raise scale_at.error(
            f"sweep '{sweep.name}' has `fixed_scale: true`: its variants are written for scale {sweep.scale}",
            "omit --scale, or copy the file and adapt its variants to the other scale",
        )
    scale_file = find_file("scale", wanted if family is None else family.of, named_at=scale_at, sweep=path)
    made = family.overrides(wanted, planned_scale(scale_file), source) if family is not None else []
    recipe = resolve(recipe_file, scale_file, sets, base=[*base, *made], with_files=with_files)
    reference = Variant(name=recipe_file.stem, overrides={}, recipe=recipe)
    asked = asked_in(source, sweep.resources).over(asked_in_scale(scale_file))
    name = scale_file.stem if family is None else wanted
    study = _study(sweep, source, path, reference, scale=name, sets=sets, asked=asked)
    return replace(study, made={one.path: one.value for one in made})


def _refuse_hidden(source: Source) -> None:
    """Raise FileError for the copy of a sweep file that a home folder keeps, if a password in it is hidden."""
    for key, place in source.places.items():
        value: Any = source.data
        for part in key:
            value = value[part]
        if isinstance(value, str) and is_hidden(value):
            raise place.error(
                f"found {value}: a home folder keeps no passwords",
                "start the sweep from its own file, or write the value here",
            )


def _command_study(
    sweep: Sweep, source: Source, path: Path, scale: str | None, sets: tuple[str, ...], base: Iterable[Override]
) -> Study:
    if scale is not None:
        raise Place(source=f"--scale {scale}").error(
            f"sweep '{sweep.name}' has its own trainer, so --scale has no effect", "omit --scale"
        )
    name, recipe = command_reference(sweep, source, path, sets, base)
    reference = Variant(name=name, overrides={}, recipe=recipe)
    asked = asked_in(source, sweep.resources)
    study = _study(sweep, source, path, reference, scale="", sets=sets, asked=asked)
    for variant in study.variants:
        assert isinstance(variant.recipe, CommandRecipe)
        check_overrides(variant.recipe, source.place(("trainer", "overrides_as")))
    return study


def _study(
    sweep: Sweep,
    source: Source,
    path: Path,
    reference: Variant,
    *,
    scale: str,
    sets: tuple[str, ...],
    asked: Asked,
) -> Study:
    reference = replace(reference, axes=_own_values(reference, grid_values(sweep, source)))
    variants = _variants(reference, drafts(sweep, source, reference.recipe, path))
    space = search_space(sweep.search, source, reference.recipe) if sweep.search else None
    _check_comparison(sweep, source, variants)
    return Study(
        sweep=sweep,
        scale=scale,
        sets=sets,
        variants=variants,
        runs=runs_of(variants, sweep.seeds),
        asked=asked,
        budget_at=budget_place(source),
        possible_pairs=tuple(possible_pairs(sweep, source, reference.recipe, path)),
        space=space,
    )


def budget_place(source: Source) -> Place:
    """The place of `budget.compute`, or of the whole file if it is not written."""
    place = source.place(("budget", "compute"))
    return place if ("budget", "compute") in source.places else replace(source.root, key="budget.compute")


def with_seeds(study: Study, seeds: Sequence[int]) -> Study:
    """The study with these seeds in place of its own."""
    sweep = study.sweep.model_copy(update={"seeds": tuple(seeds)})
    return replace(study, sweep=sweep, runs=runs_of(study.variants, seeds))


def runs_of(variants: Iterable[Variant], seeds: Iterable[int]) -> tuple[SweepRun, ...]:
    """A run for every variant and seed, variant by variant."""
    return tuple(
        SweepRun(variant=variant.name, seed=seed, id=variant.recipe.identity(seed), recipe=variant.recipe)
        for variant in variants
        for seed in seeds
    )


def _variants(reference: Variant, asked: Iterable[Draft]) -> tuple[Variant, ...]:
    """The reference and every draft resolved, or one FileError with the problems of all of them."""
    variants = {reference.name: reference}
    names = {reference.recipe.canonical_json(): reference.name}
    problems: list[FileProblem] = []
    for draft in asked:
        try:
            _add(draft, reference, variants, names)
        except FileError as error:  # the message lists the problems of every variant
            problems += error.problems
    if problems:
        raise FileError(*problems)
    called = shown_names(variants)
    return tuple(replace(variant, name=called[name]) for name, variant in variants.items())


def _own_values(reference: Variant, values: Iterable[AxisValue]) -> dict[str, str]:
    """The value on each axis that the reference has already; an axis without the reference's value has no entry."""
    own, found = reference.recipe.canonical_json(), dict[str, str]()
    for value in values:
        with suppress(FileError):  # a value that is refused by itself is not the reference's
            if vary(reference.recipe, value.overrides)[0].canonical_json() == own:
                found[value.axis] = value.name
    return found


def attention_charge(recipe: AnyRecipe) -> str | None:
    """How the recipe charges attention, `charged` or `free`; None if time is measured, or counted by a program."""
    return None if isinstance(recipe, CommandRecipe) or recipe.cluster.type == "wall" else recipe.cluster.attention.type


def _add(draft: Draft, reference: Variant, variants: dict[str, Variant], names: dict[str, str]) -> None:
    """Adds the variant to `variants` by name and to `names` by recipe; skips the reference if the draft allows it."""
    recipe, settings = vary(reference.recipe, draft.overrides)
    found, of_reference = recipe.compute_name, reference.recipe.compute_name
    if found != of_reference:
        raise draft.place.error(
            f"counts {found}, but the reference counts {of_reference}",
            "all runs of a sweep use one clock; start the sweep once per clock, with --scale",
        )
    found, of_reference = attention_charge(recipe), attention_charge(reference.recipe)
    if found != of_reference:
        raise draft.place.error(
            f"attention is {found}, but {of_reference} for the reference, so their compute is not comparable",
            "start the sweep once for each setting of attention, with --set",
        )
    identity = recipe.canonical_json()
    twin = names.get(identity)
    if twin == reference.name:
        if draft.may_be_reference:
            return
        raise draft.place.error(f"no effect: this is '{twin}' itself", "remove it, or set another value")
    if draft.name in variants:
        raise draft.place.error(f"a second variant is named '{draft.name}'", "rename one")
    if twin is not None:
        raise draft.place.error(f"'{draft.name}' is the same recipe as '{twin}'", "remove one of them")
    names[identity] = draft.name
    overrides = changes_of(recipe, reference.recipe, settings)
    variants[draft.name] = Variant(name=draft.name, overrides=overrides, recipe=recipe, axes=draft.axes)


def _check_comparison(sweep: Sweep, source: Source, variants: Sequence[Variant]) -> None:
    """Raise FileError if nothing remains to compare, or if a setting names an unknown variant."""
    if sweep.search:
        _check_search(sweep, source, variants)
    elif len(variants) == 1:
        raise source.place(("grid",)).error(
            "every remaining combination equals the reference", "give an axis another value"
        )
    _check_task(sweep, source, variants)
    names = [variant.name for variant in variants]

    def check_name(name: str, *key: str | int) -> None:
        if meant(name, names) not in names:
            raise source.place(key).error(f"unknown variant '{name}'", did_you_mean(name, names, "variants"))

    for name in sweep.published:
        check_name(name, "published", name)
    for position, claim in enumerate(sweep.claims):
        against = claim.against or names[0]
        check_name(claim.variant, "claims", position, "variant")
        check_name(against, "claims", position, "against")
        if claim.variant == against:
            raise source.place(("claims", position, "variant")).error(
                f"'{claim.variant}' is compared with itself", "name another variant, or `against`"
            )


def _check_task(sweep: Sweep, source: Source, variants: Sequence[Variant]) -> None:
    """Raise FileError if the fit uses a task that a variant does not measure."""
    for recipe in (variant.recipe for variant in variants):
        names = list[str]()
        if isinstance(recipe, ResolvedRecipe):
            names += [task.title for task in (*recipe.tasks, *recipe.evaluation.downstream)]
            names += [ALL] if len(recipe.tasks) > 1 else []
        if sweep.fit.task is not None and sweep.fit.task not in names:
            place = source.place(("fit", "task"))
            raise place.error(f"task '{sweep.fit.task}' is not measured", did_you_mean(sweep.fit.task, names, "tasks"))


def _check_search(sweep: Sweep, source: Source, variants: Sequence[Variant]) -> None:
    """Raise FileError if a key has no effect on a search, or if a variant has the name of a trial."""
    for variant in variants:
        if variant.name.startswith(TRIAL_PREFIX):
            place = source.place(("variants", variant.name))
            raise place.error(f"'{variant.name}' is reserved for a trial of the search", "rename it")
    if sweep.stop is not None:
        raise source.place(("stop",)).error("no effect on a search", "remove it; every trial trains for budget.compute")
