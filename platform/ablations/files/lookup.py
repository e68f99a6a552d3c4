"""Finds the file named by `reference: scalerl` or `scale: laptop` in a sweep.

A name that ends in `.yaml` is a path, relative to the sweep file's folder or else to the current one. Any other name is
a file in `recipes/` (`recipes/scales/` for a scale, `sweeps/paper/` for a study of the paper). The search starts beside
the sweep file's folder and continues in the current folder, the repository and the installed package.
"""

import os
from pathlib import Path
from typing import Literal

from ablations.errors import Place
from ablations.files.source import yaml_files
from ablations.nearest_name import did_you_mean

FileKind = Literal["recipe", "scale", "study"]

_FOLDERS: dict[FileKind, str] = {"recipe": "recipes", "scale": "recipes/scales", "study": "sweeps/paper"}
_PLURALS: dict[FileKind, str] = {"recipe": "recipes", "scale": "scales", "study": "studies"}
_PACKAGE = Path(__file__).parents[1]
_REPOSITORY = _PACKAGE.parents[1]

SHIPPED = tuple(root / folder for root in (_REPOSITORY, _PACKAGE) for folder in ("recipes", "sweeps"))
"""Folders of the recipes, scales and sweeps that come with the package."""


def find_file(kind: FileKind, name: str, *, named_at: Place, sweep: Path | None = None) -> Path:
    """The file of a recipe, scale or study; raises FileError, at the place that names it, if there is no such file."""
    is_path = name.endswith(".yaml")
    if is_path:
        candidates = [folder / name for folder in (*([sweep.parent] if sweep else []), Path.cwd())]
    else:
        candidates = [folder / f"{name}.yaml" for folder in _folders(kind, sweep)]
    for path in candidates:
        if os.path.isfile(path):  # unlike Path.is_file, raises no error if the name is too long
            return path
    if is_path:
        near = {str(Path(name).with_name(other.name)) for path in candidates for other in yaml_files(path.parent)}
        if near:
            raise named_at.error(f"no file {name}", did_you_mean(name, sorted(near), "files"))
    right = did_you_mean(Path(name).stem if is_path else name, sorted(files_of(kind, sweep)), _PLURALS[kind])
    raise named_at.error(f"no file {name}" if is_path else f"unknown {kind} '{name}'", right)


def files_of(kind: FileKind, sweep: Path | None = None) -> dict[str, Path]:
    """All files of a kind by name; if two share a name, the one found first."""
    found: dict[str, Path] = {}
    for folder in _folders(kind, sweep):
        for path in yaml_files(folder):
            found.setdefault(path.stem, path)
    return found


def _folders(kind: FileKind, sweep: Path | None) -> list[Path]:
    beside = [sweep.resolve().parent.parent] if sweep else []
    return [root / _FOLDERS[kind] for root in (*beside, Path.cwd(), _REPOSITORY, _PACKAGE)]
