"""The reference of a command study: its program, checked on this machine, with its configuration and its code."""

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ablations.errors import AblationsError, Place
from ablations.files.source import Source, read_yaml
from ablations.nearest_name import did_you_mean
from ablations.study.override import Override, base_and_sets, vary_configuration
from ablations.study.sweep import Sweep
from scalerl.recipe.command import CommandRecipe, Program
from scalerl.recipe.file_hash import hashes_of_code
from scalerl.run.command_line import OVERRIDES, overrides_passed

WITHOUT = "none"
"""`reference` of a program without a configuration file."""
UNNAMED = "reference"
"""Name of the variant without overrides when there is no file to name it after."""
MOST_SETTINGS = 100_000
"""Maximum length of a configuration, since the program receives it in an environment variable."""


def command_reference(
    sweep: Sweep, source: Source, path: Path, sets: Iterable[str], base: Iterable[Override]
) -> tuple[str, CommandRecipe]:
    """Name and recipe of the reference; FileError if the program, its code or its configuration is missing."""
    assert sweep.trainer is not None
    place = source.place(("trainer",))
    folder = Path(os.path.abspath(path.parent / sweep.trainer.folder))
    if not folder.is_dir():
        raise source.place(("trainer", "folder")).error(
            f"no folder {folder}", "write a path relative to the sweep file"
        )
    if sweep.trainer.log is not None:
        from ablations.logs.meaning import LogMeaning  # NumPy takes a while to load
        from ablations.logs.rows_of_run import by_keys

        try:
            LogMeaning(**sweep.trainer.log.model_dump(exclude={"path"})).check()
        except AblationsError as error:
            raise source.place(("trainer", "log")).error(by_keys(str(error))) from None
    _check_command(sweep.trainer, folder, source.place(("trainer", "command")))
    try:
        hashes = hashes_of_code(folder, sweep.trainer.code)
    except ValueError as error:
        raise source.place(("trainer", "code")).error(str(error).removeprefix("code: ")) from None
    name, configuration = UNNAMED, dict[str, Any]()
    if sweep.reference != WITHOUT:
        file, configuration = configuration_in(sweep.reference, source.place(("reference",)), path)
        name = file.stem
    parts = dict(sweep.trainer) | {"folder": str(folder), "code_sha256": hashes, "configuration": configuration}
    recipe = CommandRecipe.model_construct(**parts, overrides={})
    recipe = vary_configuration(recipe, base_and_sets(base, sets))[0]
    if len(str(recipe.settings)) > MOST_SETTINGS:
        raise place.error(f"a configuration of more than {MOST_SETTINGS} characters", "keep data in separate files")
    return name, recipe


def check_overrides(recipe: CommandRecipe, place: Place) -> None:
    """Raise FileError if an override cannot be passed to the program, would be passed under the name of another, or
    would replace an environment variable that exists, such as PATH.
    """
    if OVERRIDES not in recipe.command and recipe.overrides_as != "variables":
        return  # the program reads {config}, or ABLATIONS_SETTINGS
    try:
        passed = overrides_passed(recipe.overrides, recipe.overrides_as)
    except ValueError as error:
        found, _, right = str(error).partition("; ")
        raise place.error(found, right) from None
    paths: dict[str, str] = {}
    for path, (name, _) in passed.items():
        if name in paths:
            raise place.error(
                f"{paths[name]} and {path} are both passed as {name}", "rename a key, or use other overrides_as"
            )
        paths[name] = path
        if recipe.overrides_as == "variables" and name in os.environ:
            raise place.error(
                f"{path} would replace the environment variable {name}", "rename the key, or use other overrides_as"
            )


def configuration_in(name: str, place: Place, sweep: Path) -> tuple[Path, dict[str, Any]]:
    """The configuration file of this name beside the sweep file, or in the current folder, with its content.

    FileError, with the place, if there is none.
    """
    candidates = [folder / name for folder in (sweep.parent, Path.cwd())]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        near = sorted(other.name for other in sweep.parent.iterdir() if other.suffix in (".yaml", ".json"))
        raise place.error(f"no file {name}", did_you_mean(name, [*near, WITHOUT], "configurations"))
    return found, read_yaml(found).data  # JSON is YAML


def _check_command(program: Program, folder: Path, place: Place) -> None:
    """Raise FileError if the program is not on this machine."""
    name = program.command[0].replace("{python}", sys.executable)
    if shutil.which(name if os.sep not in name else str(folder / name)) is None:
        raise place.error(
            f"no program {name}",
            f"write a program of PATH, {{python}}, or a path relative to {folder}; it must be executable",
        )
