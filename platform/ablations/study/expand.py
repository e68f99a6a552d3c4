"""A sweep file made into runs.

>>> study = expand(Path("sweeps/loo.yaml"))
>>> [variant.name for variant in study.variants]
['scalerl', 'loo-off_policy', 'loo-loss', ...]
>>> study.runs[0].id
'3f0c9a1b2d4e'
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ablations.errors import FileError, Place, Problem, did_you_mean
from ablations.files.lookup import find_file
from ablations.files.source import Source, read_yaml
from ablations.files.validation import validated
from ablations.study.forms import Draft, drafts
from ablations.study.merge_resources import Asked, asked_in
from ablations.study.override import vary
from ablations.study.resolve import asked_in_scale, resolve
from ablations.study.resources import Resources
from ablations.study.search_points import SearchSpace, search_space
from ablations.study.sweep import Sweep
from scalerl.recipe import ALL, ResolvedRecipe

TRIAL_PREFIX = "trial-"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One recipe of a study under its name.

    >>> Variant(name="batch=small", overrides={"batch.prompts": 32}, recipe=recipe)
    """

    name: str
    overrides: dict[str, Any]
    """What it changes of the reference: dotted path to the value set, `{times: x}` worked out."""
    recipe: ResolvedRecipe


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training: `Run(variant="loo-loss", seed=0, id="3f0c9a1b2d4e", recipe=recipe)`."""

    variant: str
    seed: int
    id: str
    recipe: ResolvedRecipe


@dataclass(frozen=True, kw_only=True)
class Study:
    """A sweep with every variant resolved, the reference first, and the runs in the order of variants, then seeds."""

    sweep: Sweep
    scale: str
    """The scale in use: `--scale`, else the sweep's."""
    sets: tuple[str, ...]
    """Settings of the command line, which every variant has."""
    variants: tuple[Variant, ...]
    runs: tuple[Run, ...]
    asked: Asked
    """The scale's resources with the sweep's over them, and where each was written."""
    space: SearchSpace | None = None
    """What a search may try, where the sweep is one; its trials become variants one by one (`ablations.search`)."""

    @property
    def reference(self) -> Variant:
        """The variant that all others are compared with."""
        return self.variants[0]

    @property
    def resources(self) -> Resources:
        """What each run gets from Slurm under `--executor slurm`."""
        return self.asked.resources


def expand(path: Path, *, scale: str | None = None, sets: Iterable[str] = ()) -> Study:
    """The study in a sweep file, on another scale and with `path=value` settings for all its variants if given."""
    source, sets = read_yaml(path), tuple(sets)
    sweep = validated(source, Sweep)
    recipe_file = find_file("recipe", sweep.reference, named_at=source.place(("reference",)), sweep=path)
    scale_at = Place(source=f"--scale {scale}") if scale else source.place(("scale",))
    scale_file = find_file("scale", scale or sweep.scale, named_at=scale_at, sweep=path)
    reference = Variant(name=recipe_file.stem, overrides={}, recipe=resolve(recipe_file, scale_file, sets))
    variants = _variants(reference, drafts(sweep, source, reference.recipe, path))
    space = search_space(sweep.search, source, reference.recipe) if sweep.search else None
    _check_comparison(sweep, source, variants)
    return Study(
        sweep=sweep,
        scale=scale_file.stem,
        sets=sets,
        variants=variants,
        runs=runs_of(variants, sweep.seeds),
        asked=asked_in(source, sweep.resources).over(asked_in_scale(scale_file)),
        space=space,
    )


def runs_of(variants: Iterable[Variant], seeds: Iterable[int]) -> tuple[Run, ...]:
    """Each variant once with each seed."""
    return tuple(_run(variant, seed) for variant in variants for seed in seeds)


def _run(variant: Variant, seed: int) -> Run:
    return Run(variant=variant.name, seed=seed, id=variant.recipe.identity(seed), recipe=variant.recipe)


def _variants(reference: Variant, asked: Iterable[Draft]) -> tuple[Variant, ...]:
    """The reference and every draft resolved, or one FileError with the problems of all of them."""
    variants = {reference.name: reference}
    names = {reference.recipe.canonical_json(): reference.name}
    problems: list[Problem] = []
    for draft in asked:
        try:
            _add(draft, reference, variants, names)
        except FileError as error:  # go on, to say what is wrong with the other variants too
            problems += error.problems
    if problems:
        raise FileError(*problems)
    return tuple(variants.values())


def _add(draft: Draft, reference: Variant, variants: dict[str, Variant], names: dict[str, str]) -> None:
    """Adds the variant to `variants` by name and to `names` by recipe, unless it is the reference and may be."""
    recipe, settings = vary(reference.recipe, draft.overrides)
    found, of_reference = recipe.cluster.compute_name, reference.recipe.cluster.compute_name
    if found != of_reference:
        raise draft.place.error(
            f"compute in {found} beside the reference's {of_reference}",
            "one sweep runs on one clock; give both clocks a sweep of their own, with --scale",
        )
    twin = names.setdefault(recipe.canonical_json(), draft.name)
    if twin == reference.name:
        if draft.may_be_reference:
            return
        raise draft.place.error(f"no effect: this is '{twin}' itself", "leave it out, or set another value")
    if draft.name in variants:
        raise draft.place.error(f"a second variant '{draft.name}'", "rename one")
    if twin != draft.name:
        raise draft.place.error(f"'{draft.name}' is the same recipe as '{twin}'", "leave one of them out")
    variants[draft.name] = Variant(name=draft.name, overrides=settings, recipe=recipe)


def _check_comparison(sweep: Sweep, source: Source, variants: Sequence[Variant]) -> None:
    """Raises when nothing is left to compare, or what is said of variants is of none."""
    if sweep.search:
        _check_search(sweep, source, variants)
    elif len(variants) == 1:
        raise source.place(("grid",)).error("every combination left is the reference", "give an axis another value")
    _check_task(sweep, source, variants)
    names = [variant.name for variant in variants]
    for name in sweep.published:
        if name not in names:
            place = source.place(("published", name))
            raise place.error(f"unknown variant '{name}'", did_you_mean(name, names, "variants"))


def _check_task(sweep: Sweep, source: Source, variants: Sequence[Variant]) -> None:
    """Raises when curves are asked for of a task that a variant does not measure."""
    for recipe in (variant.recipe for variant in variants):
        names = [task.title for task in (*recipe.tasks, *recipe.evaluation.downstream)]
        names += [ALL] if len(recipe.tasks) > 1 else []
        if sweep.fit.task is not None and sweep.fit.task not in names:
            place = source.place(("fit", "task"))
            raise place.error(f"no task '{sweep.fit.task}' is measured", did_you_mean(sweep.fit.task, names, "tasks"))


def _check_search(sweep: Sweep, source: Source, variants: Sequence[Variant]) -> None:
    """Raises when a search is asked for beside what has no effect on its trials, or a variant has a trial's name."""
    for variant in variants:
        if variant.name.startswith(TRIAL_PREFIX):
            place = source.place(("variants", variant.name))
            raise place.error(f"'{variant.name}' is how trials of the search are named", "rename it")
    for key, is_written in ((("stop",), sweep.stop), (("budget", "total"), sweep.budget.total)):
        if is_written is not None:
            right = "leave it out; every trial is trained to the budget's compute"
            raise source.place(key).error("no effect on a search", right)
