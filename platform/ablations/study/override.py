"""Dotted paths into a resolved recipe or a program's configuration, and the changes they make.

    >>> recipe, settings = vary(reference, overrides_in(source, ("axes", "batch", "small")))
    >>> settings
    {'batch.prompts': 32}

A mapping is shorthand for the paths inside it: `loss: {type: grpo, clip: 0.1}` is `loss.type: grpo` and
`loss.clip: 0.1`. A different `type` resets a block to the defaults of the new type, and another `function` its
parameters. `{times: x}` multiplies the reference's number, so that one sweep serves every scale. `task.turns` is
`tasks.0.turns` where a scale has one task.
"""

import copy
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ablations.errors import FileError, Place
from ablations.files.source import KeyPath, Source, parse_value, shown_value
from ablations.files.validation import validated
from ablations.nearest_name import did_you_mean
from ablations.study.names import Values, label
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.command import NEW, AnyRecipe, CommandRecipe

MAX_TIMES = 1_000_000
RESETS = {"type": 0, "function": 1}
"""Settings that reset the others of their block, in this order."""
FILLED_IN = ("folder", "folder_sha256")
"""Settings of a user's own function that follow from the others."""


@dataclass(frozen=True, kw_only=True)
class Override:
    """One setting and its new value.

    >>> Override(path="batch.prompts", value={"times": 0.5}, place=Place(source="sweeps/sizes.yaml", line=9))
    """

    path: str
    value: Any
    place: Place

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.path.split("."))


def overrides_in(source: Source, key: KeyPath) -> tuple[Override, ...]:
    """The overrides in the mapping at `key` of a sweep file."""
    written: Any = source.data
    for part in key:
        written = written[part]
    return tuple(override for path in written for override in _flat(path, written[path], source, (*key, path)))


def overrides_from(settings: Mapping[str, Any], place: Place) -> tuple[Override, ...]:
    """Overrides that all come from one place, for example from an axis that reverts."""
    source = Source(data={}, places={}, root=place)
    return tuple(override for path, value in settings.items() for override in _flat(path, value, source, ()))


def options_in(
    values: Values, path: str, source: Source, key: KeyPath
) -> dict[str, tuple[KeyPath, tuple[Override, ...]]]:
    """The values at `key` of an axis or a dimension, by name: where each is written, and its overrides.

    Named values come with their overrides; listed values are values of the setting at `path`.
    """
    if isinstance(values, dict):
        return {name: ((*key, name), overrides_in(source, (*key, name))) for name in values}
    at = {label(value): ((*key, position), value) for position, value in enumerate(values)}
    return {name: (own, overrides_from({path: value}, source.place(own))) for name, (own, value) in at.items()}


def overrides_set(text: str) -> tuple[Override, ...]:
    """The overrides of `--set text` on the command line, such as `batch.prompts=64` or `loss={type: grpo}`.

    FileError, with the place, for other text.
    """
    path, equals, value = text.partition("=")
    place = Place(source=f"--set {text}")
    if not path or not equals:
        raise place.error("not a setting", "write --set path=value")
    return overrides_from({path: parse_value(value, place)}, place)


def base_and_sets(base: Iterable[Override], sets: Iterable[str]) -> list[Override]:
    """The overrides of every variant: those of `base`, and `sets`, which replace equal paths."""
    set_here = [override for text in sets for override in overrides_set(text)]
    replaced = {override.path for override in set_here}
    return [override for override in base if override.path not in replaced] + set_here


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


def vary_recipe(base: ResolvedRecipe, overrides: Sequence[Override]) -> tuple[ResolvedRecipe, dict[str, Any]]:
    """Apply overrides to a recipe of the platform's own trainer.

    Returns the recipe, and the settings given, by path. FileError, with the place in the file, for settings that no
    recipe has, or that do not fit together.
    """
    if not overrides:
        return base, {}
    overrides = [replace(one, path=re.sub(r"^optimizer\b", "optimiser", one.path)) for one in overrides]
    if len(base.tasks) == 1:
        overrides = [replace(one, path=re.sub(r"^task\.", "tasks.0.", one.path)) for one in overrides]
    _refuse_contradictions(overrides)
    if own := next((override for override in overrides if override.parts[0] == "resources"), None):
        right = "write `resources:` at the top of the sweep or scale file, for all its runs"
        raise own.place.error("resources are not part of a recipe", right)
    before = base.model_dump(mode="json")
    after = copy.deepcopy(before)
    settings: dict[str, Any] = {}
    places: dict[KeyPath, Place] = {}
    # A new type or function empties its block, so they come before the block's other settings.
    for override in sorted(overrides, key=lambda override: RESETS.get(override.parts[-1], len(RESETS))):
        value = _value_to_set(override, before)
        try:
            places[_set(after, override, value)] = override.place
        except FileError:
            _refuse_unknown_type(Source(data=after, places=places, root=override.place))
            raise
        if override.parts[-1] not in FILLED_IN:
            settings[override.path] = value
    source = Source(data=after, places=places, root=overrides[0].place)
    return validated(source, ResolvedRecipe), settings


def _refuse_unknown_type(source: Source) -> None:
    """Raise FileError for an unknown type, which would otherwise make each key of its block look unknown."""
    try:
        validated(source, ResolvedRecipe)
    except FileError as error:
        if found := [problem for problem in error.problems if problem.found.startswith("unknown type")]:
            raise FileError(*found) from None


def _flat(path: str, value: Any, source: Source, key: KeyPath) -> Iterator[Override]:
    """The overrides in `path: value`, where `value` is written at `key` of `source`."""
    if value == {}:
        raise source.place(key).error("found an empty mapping", "write at least one setting")
    if isinstance(value, dict) and "times" not in value:
        for name, inner in value.items():
            yield from _flat(f"{path}.{name}", inner, source, (*key, name))
    else:
        yield Override(path=path, value=value, place=source.place(key))


def _refuse_contradictions(overrides: Sequence[Override]) -> None:
    """Raise FileError if two overrides set the same path, or one sets a path inside the other's."""
    seen: dict[tuple[str, ...], Override] = {}
    for override in sorted(overrides, key=lambda override: len(override.parts)):
        for depth in range(1, len(override.parts) + 1):
            if other := seen.get(override.parts[:depth]):
                raise override.place.error(f"{override.path} is set twice", f"first at {other.place}")
        seen[override.parts] = override


def _value_to_set(override: Override, before: dict[str, Any]) -> Any:
    """The value to set: the value as written, or `times` multiplied by the number at the path before any override."""
    if not isinstance(override.value, dict):
        return override.value
    times = _times(override)
    holder, key = _located(before, override)
    if key[-1] not in holder and isinstance(holder, dict):
        raise override.place.error(f"unknown key '{key[-1]}'", did_you_mean(str(key[-1]), holder, "keys"))
    number = holder[key[-1]]
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise override.place.error(f"{{times: {times}}} cannot multiply {shown_value(number)}", "times needs a number")
    # Halves round up: Python's round would turn 2.5 into 2 but 3.5 into 4.
    return max(1, math.floor(number * times + 0.5)) if isinstance(number, int) else number * times


def _times(override: Override) -> float:
    if unknown := [name for name in override.value if name != "times"]:
        raise override.place.error(f"unknown key '{unknown[0]}' beside times", "write {times: x} alone")
    times = override.value["times"]
    if isinstance(times, bool) or not isinstance(times, int | float) or not 0 < times <= MAX_TIMES:
        right = f"must be a number above 0 and at most {MAX_TIMES}"
        raise override.place.error(f"found times: {shown_value(times)}", right)
    return times


def _set(tree: dict[str, Any], override: Override, value: Any) -> KeyPath:
    """Set `value` in `tree`, emptying a block whose type changes; returns the path that was set."""
    if override.parts[-1] == "type" and value == "custom":
        _make_block(tree, override)
    holder, key = _located(tree, override)
    block: Any = tree
    for part in key[:-1]:
        block = block[part]
        if isinstance(block, dict):
            block.pop("problems_sha256", None)  # hash of the problems made with the previous settings
    if key[-1] == "type" and holder.get("type", value) != value:
        holder.clear()
    if key[-1] == "function" and holder.get("type") == "custom":
        if holder.get("function") != value:
            holder["parameters"] = {}
        holder["folder"] = str(override.place.folder)
        holder.pop("folder_sha256", None)
    if isinstance(holder, dict):
        holder.pop(f"{key[-1]}_sha256", None)  # hash of the previous file
    holder[key[-1]] = with_folder(value, override.place.folder)
    return key


def with_folder(written: Any, folder: Path) -> Any:
    """The settings, with the folder to search first for each of the user's own functions and programs."""
    if isinstance(written, list):
        return [with_folder(part, folder) for part in written]
    if not isinstance(written, dict):
        return written
    own = {"folder": str(folder)} if written.get("type") in ("custom", "program") else {}
    return own | {key: with_folder(part, folder) for key, part in written.items()}


def _make_block(tree: dict[str, Any], override: Override) -> None:
    """Replace a single word, as in `aggregation: token`, by a block for a function of the user's own."""
    around = replace(override, path=override.path.rpartition(".")[0])
    if around.path:
        holder, key = _located(tree, around)
        if isinstance(_entry(holder, key[-1], around, len(key)), str):
            holder[key[-1]] = {}


def _located(tree: dict[str, Any], override: Override) -> tuple[Any, KeyPath]:
    """The mapping or list that holds the last part of the path, and the path with list positions as integers.

    The last part need not exist: the model decides whether a mapping may have it.
    """
    holder: Any = tree
    key: list[str | int] = []
    for part in override.parts:
        if key:
            holder = _entry(holder, key[-1], override, len(key))
        key.append(_key(holder, part, override))
    return holder, tuple(key)


def _entry(holder: Any, part: str | int, override: Override, depth: int) -> Any:
    if isinstance(holder, dict) and part not in holder:
        inside = "".join(f".{one}" for one in override.parts[depth:])
        place = replace(override.place, key=override.place.key.removesuffix(inside))
        raise place.error(f"unknown key '{part}'", did_you_mean(str(part), holder, "keys"))
    return holder[part]


def _key(holder: Any, part: str, override: Override) -> str | int:
    """`part` as a key of the mapping `holder`, or as a position in the list `holder`."""
    match holder:
        case dict():
            return part
        case list() if part in map(str, range(len(holder))):
            return int(part)
        case list():
            raise override.place.error(f"no entry '{part}'", f"entries are 0 to {len(holder) - 1}")
    around = override.path.removesuffix(f".{part}")
    right = "write a number, or {times: x}" if isinstance(holder, int | float) else "write the value itself"
    raise override.place.error(f"unknown key '{part}': {around} is {shown_value(holder)} and has no keys", right)


def vary_configuration(base: CommandRecipe, overrides: Sequence[Override]) -> tuple[CommandRecipe, dict[str, Any]]:
    """Apply overrides to a program's configuration, on top of its own settings; here a new `type` does not empty its
    block.

    A key that the configuration lacks needs a `+` before its path, unless there is no configuration.
    """
    _refuse_contradictions(overrides)
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
        holder, key = _located(before, known)
        if isinstance(holder, dict) and key[-1] not in holder:
            right = did_you_mean(str(key[-1]), holder, "keys")
            raise override.place.error(
                f"unknown key '{key[-1]}' of the configuration", f"{right}; a new key is written '{NEW}{override.path}'"
            )
    return _value_to_set(known, before)


def _stands(configuration: dict[str, Any], path: str, value: Any) -> bool:
    """True if a configuration already has this value at a path."""
    return any(type(standing) is type(value) and standing == value for standing in value_at(configuration, path))
