"""Recipes and scales for `show` and `list`: the files that sweeps name."""

from pathlib import Path

from ablations.cli.options import console, print_json, tell
from ablations.files.lookup import FileKind, files_of
from ablations.study.resolve import checked_recipe, checked_scale, read_settings
from ablations.terminal.listing import Column, Listing


def known_recipes(begun: str) -> list[str]:
    """Shell completion: recipes whose names start with `begun`."""
    return [name for name in files_of("recipe") if name.startswith(begun)]


def known_scales(begun: str) -> list[str]:
    """Shell completion: scales whose names start with `begun`."""
    return [name for name in files_of("scale") if name.startswith(begun)]


def file_named(name: str) -> tuple[FileKind, Path] | None:
    """The recipe or scale of this name, with its kind; None if there is neither."""
    kinds: tuple[FileKind, ...] = ("recipe", "scale")
    return next(((kind, files[name]) for kind in kinds if name in (files := files_of(kind))), None)


def show_file(kind: FileKind, path: Path, as_json: bool) -> None:
    """Print a recipe or scale as written, with its comments, then every setting with the defaults filled in."""
    import yaml

    source = read_settings(path)
    settings = (checked_recipe(source) if kind == "recipe" else checked_scale(source)).model_dump(mode="json")
    if as_json:
        print_json(settings)
        return
    tell(f"# {kind} {path.stem}, {path}\n{path.read_text()}\n# With every default:")
    tell(yaml.safe_dump(settings, sort_keys=False, default_flow_style=None, width=120), end="")


def list_files(kind: FileKind, as_json: bool) -> None:
    """Print every recipe or scale with the first comment of its file."""
    said = {name: _first_comment(path) for name, path in files_of(kind).items()}
    if as_json:
        print_json([{kind: name, "says": text} for name, text in said.items()])
        return
    table = Listing(columns=(Column(heading=kind), Column(heading="says", kind="prose")))
    for name, text in said.items():
        table.add(name, text)
    console().print(table)


def _first_comment(path: Path) -> str:
    """The lines of the comment that a file begins with, as one."""
    found = []
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        found.append(line.lstrip("# "))
    return " ".join(found)
