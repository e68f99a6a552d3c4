"""A recipe file and a scale file, merged into one resolved recipe."""

from collections.abc import Iterable
from pathlib import Path

from ablations.errors import Place
from ablations.files.lookup import find_file
from ablations.files.source import Source, read_yaml
from ablations.files.validation import validated
from ablations.study.merge_resources import Asked, asked_in
from ablations.study.override import overrides_set, vary
from ablations.study.resources import Resources
from scalerl.recipe import Recipe, ResolvedRecipe, Scale


class ScaleFile(Scale):
    """The keys of a scale file: the scale, and the resources that its runs request from Slurm."""

    resources: Resources = Resources()
    """See `ablations.study.resources`."""


def load_resolved(recipe: str, scale: str, sets: Iterable[str] = ()) -> ResolvedRecipe:
    """The recipe and scale of these names or paths, changed by `sets` such as `batch.prompts=64`."""
    recipe_file = find_file("recipe", recipe, named_at=Place(source=f"recipe {recipe}"))
    scale_file = find_file("scale", scale, named_at=Place(source=f"scale {scale}"))
    return resolve(recipe_file, scale_file, sets)


def resolve(recipe_file: Path, scale_file: Path, sets: Iterable[str] = ()) -> ResolvedRecipe:
    """The two files override the defaults; `sets` override the files."""
    recipe, scale = read_yaml(recipe_file), read_yaml(scale_file)
    checked_recipe(recipe)
    checked_scale(scale)
    of_run = {key: value for key, value in scale.data.items() if key != "resources"}
    both = Source(data=recipe.data | of_run, places={**recipe.places, **scale.places}, root=scale.root)
    resolved, _ = vary(validated(both, ResolvedRecipe), [override for text in sets for override in overrides_set(text)])
    return resolved


def checked_recipe(source: Source) -> Recipe:
    """The recipe in a file; the message on a key of a scale says where the key belongs."""
    elsewhere = dict.fromkeys(Scale.model_fields, "a scale") | {"resources": "a scale or a sweep"}
    return validated(source, Recipe, elsewhere=elsewhere)


def checked_scale(source: Source) -> ScaleFile:
    """The scale in a file; the message on a key of a recipe says where the key belongs."""
    return validated(source, ScaleFile, elsewhere=dict.fromkeys(Recipe.model_fields, "a recipe"))


def asked_in_scale(scale_file: Path) -> Asked:
    """The resources that a scale requests from Slurm; a sweep may override them."""
    source = read_yaml(scale_file)
    return asked_in(source, checked_scale(source).resources)
