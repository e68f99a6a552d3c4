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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ablations.errors import Place
from ablations.files.lookup import find_file
from ablations.files.source import Source
from ablations.nearest_name import did_you_mean
from ablations.study.draft import MAX_COMBINATIONS, Draft
from ablations.study.names import label
from ablations.study.override import Override, options_in, overrides_from, overrides_in
from ablations.study.pairs import TwoChanges, paired, possible
from ablations.study.program import configuration_in
from ablations.study.resolve import checked_recipe, read_settings
from ablations.study.sweep import Axes, LeaveOneOut, Sweep
from scalerl.recipe import Recipe
from scalerl.recipe.command import AnyRecipe, CommandRecipe


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
    yield from paired(sweep, source, [*single, *written])


def possible_pairs(sweep: Sweep, source: Source, reference: AnyRecipe, path: Path) -> list[TwoChanges]:
    """The names of every pair of changes that `pairs` may train together; none for a file without pairs."""
    if not sweep.pairs:
        return []
    single = itertools.chain.from_iterable(_single(sweep, source, reference, path))
    return [(first.name, second.name) for first, second in possible(single)]


def _single(sweep: Sweep, source: Source, reference: AnyRecipe, path: Path) -> tuple[list[Draft], list[Draft]]:
    """The drafts of one change each: those of `leave_one_out` and `axes`, and those of `variants`."""
    single = [*left_out(sweep.leave_one_out, source, reference, path)] if sweep.leave_one_out else []
    single += [_draft((level,)) for level in itertools.chain.from_iterable(_levels(sweep.axes, source, "axes"))]
    written = [
        Draft(name=name, overrides=overrides_in(source, ("variants", name)), place=source.place(("variants", name)))
        for name in sweep.variants
    ]
    return single, written


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


def left_out(form: LeaveOneOut, source: Source, reference: AnyRecipe, path: Path) -> Iterator[Draft]:
    """The variants of a leave-one-out study: the reference with one axis reverted to the other recipe's value.

    FileError, with the place, if the recipes do not differ, or do not on an axis that is named, or if it is unknown.
    """
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
