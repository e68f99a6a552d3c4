"""Finds the user's own files that changed since an earlier run of the same recipe and seed."""

from typing import Any

from ablations.home.home import Home
from scalerl.errors import CannotResume
from scalerl.recipe import Own, ResolvedRecipe
from scalerl.recipe.command import AnyRecipe
from scalerl.recipe.own_function import changed_files


def edited_files(home: Home, recipe: AnyRecipe, seed: int) -> list[str]:
    """Names of the files that differ from those of the last run that is otherwise the same; empty if there is no such
    run.

    Unreadable runs are skipped.
    """
    if not isinstance(recipe, ResolvedRecipe) or not recipe.own:
        return []
    wanted, found = _without_files(recipe.canonical()), list[tuple[float, dict[str, Own]]]()
    for run_id in home.run_ids():
        folder = home.run(run_id)
        try:
            other, its_seed = folder.read_recipe()
        except CannotResume:
            continue
        if isinstance(other, ResolvedRecipe) and its_seed == seed and _without_files(other.canonical()) == wanted:
            found.append(((folder.path / "recipe.json").stat().st_mtime, other.own))
    if not found:
        return []
    _, last = max(found, key=lambda pair: pair[0])
    return sorted({name for key, own in recipe.own.items() for name in changed_files(last[key].files, own.files)})


def _without_files(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_files(part) for key, part in value.items() if key != "folder_sha256"}
    return [_without_files(part) for part in value] if isinstance(value, list) else value
