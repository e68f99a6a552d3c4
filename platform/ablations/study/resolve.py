"""A recipe file and a scale file, merged into one resolved recipe."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ablations.errors import Place
from ablations.files.lookup import find_file
from ablations.files.source import Source, read_yaml
from ablations.files.validation import validated
from ablations.study.override import Override, base_and_sets, vary_recipe, with_folder
from ablations.study.resources import Asked, Resources, asked_in
from scalerl.recipe import Recipe, ResolvedRecipe, Scale


class ScaleFile(Scale):
    """The keys of a scale file: the scale, and the Slurm resources of its runs."""

    resources: Resources = Resources()
    """See `ablations.study.resources`."""


def load_resolved(recipe: str, scale: str, sets: Iterable[str] = (), *, with_files: bool = True) -> ResolvedRecipe:
    """The recipe and scale with these names or paths, changed by `sets` such as `batch.prompts=64`.

    Without files, as for a plan, weights and data are not read.
    """
    recipe_file = find_file("recipe", recipe, named_at=Place(source=f"recipe {recipe}"))
    scale_file = find_file("scale", scale, named_at=Place(source=f"scale {scale}"))
    return resolve(recipe_file, scale_file, sets, with_files=with_files)


def _unread(source: Source) -> Source:
    return replace(source, data=unread(source.data))


def unread(written: Any) -> Any:
    """Settings whose paths are not read; each gets a placeholder hash."""
    if isinstance(written, list):
        return [unread(part) for part in written]
    if not isinstance(written, dict):
        return written
    paths = [key for key in written if key in ("path", "validation_path") and isinstance(written[key], str)]
    hashes = [f"{key}_sha256" for key in paths]
    if written.get("type") == "reasoning_gym":
        hashes.append("problems_sha256")
    no_files = {"folder_sha256": []} if written.get("type") in ("custom", "program") else {}
    return {key: unread(part) for key, part in written.items()} | dict.fromkeys(hashes, "0" * 64) | no_files


def read_settings(path: Path) -> Source:
    """Read a recipe or scale file; the user's own functions are searched for beside the file."""
    source = read_yaml(path)
    return replace(source, data=with_folder(source.data, path.parent))


def resolve(
    recipe_file: Path,
    scale_file: Path,
    sets: Iterable[str] = (),
    *,
    base: Iterable[Override] = (),
    with_files: bool = True,
) -> ResolvedRecipe:
    """Merge the two files over the defaults, `base` over the files, and `sets` over both.

    Without files, weights and data are not read.

    The merged files need to be valid only once `sets` are applied: a scale whose model does not think may need one of
    them.
    """
    recipe, scale = read_settings(recipe_file), read_settings(scale_file)
    if not with_files:
        scale = _unread(scale)
    parts = {**dict(checked_recipe(recipe)), **dict(checked_scale(scale))}
    del parts["resources"]
    if overrides := base_and_sets(base, sets):
        return vary_recipe(ResolvedRecipe.model_construct(**parts), overrides)[0]
    of_run = {key: value for key, value in scale.data.items() if key != "resources"}
    both = Source(data=recipe.data | of_run, places={**recipe.places, **scale.places}, root=scale.root)
    return validated(both, ResolvedRecipe)


def checked_recipe(source: Source) -> Recipe:
    """The recipe in a file; for a key of a scale, the error says where the key belongs."""
    elsewhere = dict.fromkeys(Scale.model_fields, "a scale") | {"resources": "a scale or a sweep"}
    return validated(source, Recipe, elsewhere=elsewhere)


def checked_scale(source: Source) -> ScaleFile:
    """The scale in a file; for a key of a recipe, the error says where the key belongs."""
    return validated(source, ScaleFile, elsewhere=dict.fromkeys(Recipe.model_fields, "a recipe"))


def asked_in_scale(scale_file: Path) -> Asked:
    """The Slurm resources that a scale requests; a sweep may override them."""
    return asked_in(read_yaml(scale_file), planned_scale(scale_file).resources)


def planned_scale(scale_file: Path) -> ScaleFile:
    """The scale in a file; weights and data are not read."""
    return checked_scale(_unread(read_settings(scale_file)))
