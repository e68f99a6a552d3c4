"""Overrides applied to a recipe of ours, or to the configuration of a program."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ablations.errors import did_you_mean
from ablations.study.override import Override, located, refuse_contradictions, value_to_set, vary_recipe
from scalerl.recipe.command import NEW, AnyRecipe, CommandRecipe


def vary(base: AnyRecipe, overrides: Sequence[Override]) -> tuple[AnyRecipe, dict[str, Any]]:
    """Apply overrides; returns the recipe and the value set at each path. Errors point at the responsible override."""
    if isinstance(base, CommandRecipe):
        return vary_configuration(base, overrides)
    return vary_recipe(base, overrides)


def changes_of(recipe: AnyRecipe, reference: AnyRecipe, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in which a recipe differs from the reference; a value equal to the reference's is left out."""
    own, other = plain_settings(recipe), plain_settings(reference)
    return {path: value for path, value in settings.items() if value_at(own, path) != value_at(other, path)}


def plain_settings(recipe: AnyRecipe) -> dict[str, Any]:
    """Every setting of a recipe as plain data; for a program, its configuration."""
    return recipe.settings if isinstance(recipe, CommandRecipe) else recipe.model_dump(mode="json")


def value_at(tree: Any, path: str) -> list[Any]:
    """The value at a path, in a list of one; an empty list if the tree has no such path."""
    for part in path.removeprefix(NEW).split("."):
        if isinstance(tree, dict) and part in tree:
            tree = tree[part]
        elif isinstance(tree, list) and part in map(str, range(len(tree))):
            tree = tree[int(part)]
        else:
            return []
    return [tree]


def vary_configuration(base: CommandRecipe, overrides: Sequence[Override]) -> tuple[CommandRecipe, dict[str, Any]]:
    """Apply overrides to a program's configuration, on top of its own settings; here a new `type` does not empty its
    block.

    A key that the configuration lacks needs a `+` before its path, unless there is no configuration.
    """
    refuse_contradictions(overrides)
    before, settings = base.settings, dict[str, Any]()
    for override in overrides:
        settings[override.path] = _configured(before, override, any_key=not base.configuration)
    written = {path.removeprefix(NEW): path for path in base.overrides}  # a key that `base` has added stays marked
    together = base.overrides | {written.get(path.removeprefix(NEW), path): value for path, value in settings.items()}
    changing = {path: value for path, value in together.items() if not _stands(base.configuration, path, value)}
    return base.model_copy(update={"overrides": changing}), settings


def _configured(before: dict[str, Any], override: Override, *, any_key: bool) -> Any:
    """The value that an override sets in a configuration; FileError if its key must exist and does not, or must not
    exist and does."""
    known = replace(override, path=override.path.removeprefix(NEW))
    is_there = bool(value_at(before, known.path))
    if override.path.startswith(NEW):
        if is_there:
            raise override.place.error(f"{known.path} already exists", f"write it without {NEW}")
    elif is_there or not any_key:
        holder, key = located(before, known)
        if isinstance(holder, dict) and key[-1] not in holder:
            right = did_you_mean(str(key[-1]), holder, "keys")
            raise override.place.error(
                f"unknown key '{key[-1]}' of the configuration", f"{right}; a new key is written '{NEW}{override.path}'"
            )
    return value_to_set(known, before)


def _stands(configuration: dict[str, Any], path: str, value: Any) -> bool:
    """True if a configuration already has this value at a path."""
    return any(type(standing) is type(value) and standing == value for standing in value_at(configuration, path))
