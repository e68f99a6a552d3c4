"""`leave_one_out` of a sweep file: one axis at a time reverts to another recipe's value."""

from collections.abc import Iterator
from pathlib import Path

from ablations.files.lookup import find_file
from ablations.files.source import Source
from ablations.nearest_name import did_you_mean
from ablations.study.draft import Draft
from ablations.study.override import overrides_from, overrides_in
from ablations.study.program import configuration_in
from ablations.study.resolve import checked_recipe, read_settings
from ablations.study.sweep import LeaveOneOut
from scalerl.recipe import Recipe
from scalerl.recipe.command import AnyRecipe, CommandRecipe


def left_out(form: LeaveOneOut, source: Source, reference: AnyRecipe, path: Path) -> Iterator[Draft]:
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
