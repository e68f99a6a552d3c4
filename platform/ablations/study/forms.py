"""The forms of a study, and the changes that each requests before anything is resolved.

leave_one_out   loo-loss, loo-advantage, ...           one axis at a time reverts to another recipe's value
axes            batch=small, batch=large, ...          one factor at a time
zip             batch=small,rate=low, ...              paired factors
grid            batch=small,rate=low, ...              crossed factors
variants        the names as written
pairs           loo-loss+loo-advantage, ...        two of the above at once, except for zip and grid
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ablations.errors import Place, did_you_mean
from ablations.files.lookup import find_file
from ablations.files.source import Source
from ablations.study.balanced_pairs import TwoChanges, balanced_pairs
from ablations.study.names import label
from ablations.study.override import Override, options_in, overrides_from, overrides_in
from ablations.study.program import configuration_in
from ablations.study.resolve import checked_recipe, read_settings
from ablations.study.sweep import Axes, LeaveOneOut, Sweep
from ablations.text import TOGETHER, counted
from scalerl.recipe import Recipe
from scalerl.recipe.command import AnyRecipe, CommandRecipe

MAX_COMBINATIONS = 1000


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A variant as requested in the sweep file.

    >>> Draft(name="batch=small", overrides=(Override(path="batch.prompts", value=32, place=place),), place=place)
    """

    name: str
    overrides: tuple[Override, ...]
    place: Place
    may_be_reference: bool = False
    """True if the draft may change nothing: one point of a grid may be the reference."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """The draft's value on each axis that it combines."""


@dataclass(frozen=True, kw_only=True)
class AxisValue:
    """One value of an axis of `axes`, `grid` or `zip`, with the changes that it requests."""

    axis: str
    name: str
    overrides: tuple[Override, ...]
    place: Place


_Combination = tuple[AxisValue, ...]


def drafts(sweep: Sweep, source: Source, reference: AnyRecipe, path: Path) -> Iterator[Draft]:
    """Every variant that the sweep file at `path` requests, except the reference."""
    single, written = _single(sweep, source, reference, path)
    yield from single
    yield from _combined(sweep, source)
    yield from written
    yield from _together(sweep, source, [*single, *written])


def possible_pairs(sweep: Sweep, source: Source, reference: AnyRecipe, path: Path) -> list[TwoChanges]:
    """The names of every two changes that `pairs` may train together; none of a file without pairs."""
    if not sweep.pairs:
        return []
    single = itertools.chain.from_iterable(_single(sweep, source, reference, path))
    return [(first.name, second.name) for first, second in _possible(single)]


def _single(sweep: Sweep, source: Source, reference: AnyRecipe, path: Path) -> tuple[list[Draft], list[Draft]]:
    """The drafts of one change each: those of `leave_one_out` and `axes`, and those of `variants`."""
    single = [*_left_out(sweep.leave_one_out, source, reference, path)] if sweep.leave_one_out else []
    single += [_draft((level,)) for level in itertools.chain.from_iterable(_levels(sweep.axes, source, "axes"))]
    written = [
        Draft(name=name, overrides=overrides_in(source, ("variants", name)), place=source.place(("variants", name)))
        for name in sweep.variants
    ]
    return single, written


def _together(sweep: Sweep, source: Source, single: Sequence[Draft]) -> Iterator[Draft]:
    """The drafts of `pairs`: two changes at once."""
    if isinstance(sweep.pairs, tuple):
        asked = [_asked_pair(names, source.place(("pairs", n)), single) for n, names in enumerate(sweep.pairs)]
    else:
        place = source.place(("pairs",))
        asked = [(place, pair) for pair in _number_of(sweep.pairs, place, single)] if sweep.pairs else []
    for place, (first, second) in asked:
        name = f"{first.name}{TOGETHER}{second.name}"
        yield Draft(name=name, overrides=(*first.overrides, *second.overrides), place=place)


def _number_of(asked: int, place: Place, single: Sequence[Draft]) -> list[tuple[Draft, Draft]]:
    """All possible pairs if asked for True, else so many of them."""
    found = _possible(single)
    if not found:
        raise place.error("no two variants change different settings", "remove it, or add one")
    if asked is not True and asked > len(found):
        raise place.error(f"found {asked}, of {counted(len(found), 'possible pair')}", "write true for all of them")
    number = len(found) if asked is True else asked
    if number > MAX_COMBINATIONS:
        raise place.error(f"{number} pairs", f"write how many to train, at most {MAX_COMBINATIONS}, or list them")
    chosen = balanced_pairs([(first.name, second.name) for first, second in found], number)
    return [pair for pair in found if (pair[0].name, pair[1].name) in chosen]


def _possible(single: Iterable[Draft]) -> list[tuple[Draft, Draft]]:
    """Every two drafts of different settings."""
    return [pair for pair in itertools.combinations(single, 2) if not _clash(*pair)]


def _asked_pair(names: tuple[str, str], place: Place, single: Sequence[Draft]) -> tuple[Place, tuple[Draft, Draft]]:
    known = {draft.name: draft for draft in single}
    for name in names:
        if name not in known:
            raise place.error(f"unknown variant '{name}'", did_you_mean(name, known, "variants"))
    first, second = (known[name] for name in names)
    if paths := _clash(first, second):
        raise place.error(
            f"'{first.name}' and '{second.name}' both set {paths[0]}", "pair variants of different settings"
        )
    return place, (first, second)


def _clash(first: Draft, second: Draft) -> list[str]:
    """Paths of the first draft that the second one also sets, or whose parent or part it sets."""
    others = [one.path for one in second.overrides]
    return [
        one.path
        for one in first.overrides
        if any(f"{one.path}.".startswith(f"{path}.") or f"{path}.".startswith(f"{one.path}.") for path in others)
    ]


def _left_out(form: LeaveOneOut, source: Source, reference: AnyRecipe, path: Path) -> Iterator[Draft]:
    named_at = source.place(("leave_one_out", "revert_to"))
    if isinstance(reference, CommandRecipe):
        own, other = reference.settings, configuration_in(form.revert_to, named_at, path)[1]
        known = [*own]
    else:
        file = find_file("recipe", form.revert_to, named_at=named_at, sweep=path)
        own, other = reference.model_dump(mode="json"), checked_recipe(read_settings(file)).model_dump(mode="json")
        known = [*Recipe.model_fields]
    differing = {axis: other[axis] for axis in known if axis in other and own[axis] != other[axis]}
    axes = form.axes or dict.fromkeys(differing)
    if not axes:
        raise named_at.error(
            "this recipe equals the reference on every axis", "name another recipe, or list axes with their values"
        )
    for axis, written in axes.items():
        key = ("leave_one_out", "axes", axis)
        place = source.place(key)
        if axis not in known:
            raise place.error(f"unknown axis '{axis}'", did_you_mean(axis, known, "axes"))
        if not written and axis not in differing:
            found = f"no effect: reference and revert_to agree on {axis}"
            raise place.error(found, "remove it, or write the value to set")
        overrides = overrides_in(source, key) if written else overrides_from({axis: differing[axis]}, place)
        yield Draft(name=f"loo-{axis}", overrides=overrides, place=place)


def grid_values(sweep: Sweep, source: Source) -> Iterator[AxisValue]:
    """Every value of every axis of the grid."""
    return itertools.chain.from_iterable(_levels(sweep.grid, source, "grid"))


def _combined(sweep: Sweep, source: Source) -> Iterator[Draft]:
    pairs, crossings = _pairs(sweep, source), _crossings(sweep, source)
    excluded = _excluded(sweep, source, pairs + crossings)
    yield from (_draft(pair) for pair in pairs if _name(pair) not in excluded)
    yield from (_draft(crossing, may_be_reference=True) for crossing in crossings if _name(crossing) not in excluded)


def _excluded(sweep: Sweep, source: Source, combinations: list[_Combination]) -> set[str]:
    """The names of the combinations that an entry of `exclude` matches; an entry that matches none is an error."""
    excluded: set[str] = set()
    for position, entry in enumerate(sweep.exclude):
        pattern = {(axis, label(value)) for axis, value in entry.items()}
        matches = {_name(every) for every in combinations if pattern <= {(level.axis, level.name) for level in every}}
        if not matches:
            place = source.place(("exclude", position))
            raise place.error("excludes nothing", _right_pattern(pattern, combinations))
        excluded |= matches
    return excluded


def _levels(axes: Axes, source: Source, form: str) -> list[list[AxisValue]]:
    return [
        [
            AxisValue(axis=axis, name=name, overrides=overrides, place=source.place(key))
            for name, (key, overrides) in options_in(values, axis, source, (form, axis)).items()
        ]
        for axis, values in axes.items()
    ]


def _crossings(sweep: Sweep, source: Source) -> list[_Combination]:
    levels = _levels(sweep.grid, source, "grid")
    num_combinations = math.prod(map(len, levels))
    if num_combinations > MAX_COMBINATIONS:
        raise source.place(("grid",)).error(f"{num_combinations} combinations", f"must be at most {MAX_COMBINATIONS}")
    return list(itertools.product(*levels)) if levels else []


def _pairs(sweep: Sweep, source: Source) -> list[_Combination]:
    levels = _levels(sweep.zip, source, "zip")
    for axis, other in itertools.pairwise(levels):
        if len(axis) != len(other):
            place = source.place(("zip", other[0].axis))
            raise place.error(f"found {len(other)} values", f"must be {len(axis)}, as many as {axis[0].axis} has")
    return list(zip(*levels, strict=True))


def _name(combination: _Combination) -> str:
    return ",".join(f"{level.axis}={level.name}" for level in combination)


def _draft(combination: _Combination, *, may_be_reference: bool = False) -> Draft:
    return Draft(
        name=_name(combination),
        overrides=tuple(override for level in combination for override in level.overrides),
        place=combination[0].place,
        may_be_reference=may_be_reference,
        axes={level.axis: level.name for level in combination},
    )


def _right_pattern(pattern: set[tuple[str, str]], combinations: list[_Combination]) -> str:
    """Advice for an exclusion that matches nothing, based on the first part that no combination has."""
    values: dict[str, dict[str, None]] = {}
    for level in itertools.chain.from_iterable(combinations):
        values.setdefault(level.axis, {})[level.name] = None
    for axis, name in sorted(pattern):
        if axis not in values:
            return did_you_mean(axis, values, "axes of grid and zip")
        if name not in values[axis]:
            return did_you_mean(name, values[axis], f"values of {axis}")
    return "no combination has all of these values"
