"""The files that a function of your own consists of, found without running them.

>>> find_source("my_ideas.losses", (Path("sweeps"), Path()))
(PosixPath('/home/ada/sweeps'), ['my_ideas/common.py', 'my_ideas/losses.py'])
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


def find_source(module: str, folders: Sequence[Path]) -> tuple[Path, list[str]]:
    """The first of the folders that has the module, and the files in it that the module needs, sorted and relative.

    Raises ValueError if no folder has it, if its name is one of Python's own, or if a file is not Python.
    """
    if module.partition(".")[0] in sys.stdlib_module_names:
        raise ValueError(f"module {module!r} shares its name with a standard-library module; rename the file")
    places = list(dict.fromkeys(folder.expanduser().absolute() for folder in folders))
    for folder in places:
        if file_of_module(module, folder):
            return folder, sorted(_reached(module, folder))
    looked = " and in ".join(map(str, places))
    raise ValueError(
        f"found no file {module.replace('.', '/')}.py: looked in {looked}; write the path from one of these folders, "
        f"as in `my_ideas.losses:topr` for the function topr of my_ideas/losses.py"
    )


def file_of_module(module: str, folder: Path) -> str | None:
    """The module's file relative to the folder; None if the folder has none."""
    path = module.replace(".", "/")
    return next((name for name in (f"{path}.py", f"{path}/__init__.py") if (folder / name).is_file()), None)


def module_of_file(file: str) -> str:
    """The name under which a file is imported: `my_ideas.losses` for `my_ideas/losses.py`."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _reached(module: str, folder: Path) -> set[str]:
    """Files of the module, of the packages around it, and of all that they import from the folder."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):
            file = file_of_module(".".join(parts[:depth]), folder)
            if file is not None and file not in found and parts[0] not in sys.stdlib_module_names:
                found.add(file)
                waiting += _imported(folder / file, file)
    return found


def _imported(path: Path, file: str) -> Iterator[str]:
    """Names of all modules that a file may import, anywhere in it, including modules of other folders."""
    package = module_of_file(file).split(".")
    if not file.endswith("__init__.py"):
        package.pop()
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError as error:
        raise ValueError(f"{path}:{error.lineno} is not Python ({error.msg}); correct the file") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}".lstrip(".") for alias in node.names)
