"""Finds packages that a study's program needs and its Python lacks, before anything starts.

`trainer.requires` says what a program needs. Once that is met, the imports of its script are read: those that run
whatever happens, up to the first line after which a module might come from anywhere.
"""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import InvalidVersion

from ablations import log
from scalerl.checks.finding import Finding
from scalerl.recipe.command import CommandRecipe

PROGRAM = "program"
"""Value of `part` in findings about the program of a study."""
PYTHON = re.compile(r"(pypy|python)(\d+(\.\d+)?)?")
CHOOSES_PYTHON = re.compile(r"(PATH|VIRTUAL_ENV|PYTHON\w*)=")
"""Settings of `env` that select another Python or other packages."""
LAUNCHERS = frozenset(("torchrun", "accelerate", "deepspeed"))
"""Commands that run a script with the Python that they are installed in."""
LAUNCHING_MODULES = frozenset(("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"))
HARMLESS_CALL = re.compile(r"(os\.environ\.\w+|os\.getenv|os\.putenv|warnings\.\w+|logging\.\w+|Path|print)")
"""Calls at the top of a script that do not affect which modules can be imported."""
DISTRIBUTIONS = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dotenv": "python-dotenv",
    "git": "GitPython",
    "hydra": "hydra-core",
    "PIL": "pillow",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}
"""The package to install for a module with a different name."""
PROBE_LIMIT_S = 30.0
PROBE = """
import importlib.metadata, importlib.util, json, sys
first, distributions, modules = json.loads(sys.argv[1])
python = sys.version.split()[0]
if not getattr(sys.flags, "safe_path", False):
    sys.path[0] = first

def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None

def is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return True

versions, missing = [version(name) for name in distributions], [name for name in modules if not is_there(name)]
print(json.dumps([python, versions, missing]))
"""
"""Makes a Python report its version, the versions of its packages, and the modules that it cannot find."""


def examine_packages(recipe: CommandRecipe, *, trains_here: bool = True) -> Finding | None:
    """The packages that are missing on this machine, with the line that installs them; None if none is known to be
    missing.

    An error if the runs train here, else a warning: another machine may have them.
    """
    folder = Path(recipe.folder)
    python = python_of(recipe.command, folder)
    if python is None:
        return _unseen(recipe) if recipe.requires else None
    script = script_of(recipe.command, folder)
    imports = {} if script is None else dict(_Walk(script.root).files(script.paths))
    if not trains_here:
        imports.pop("ablations", None)  # jobs bring it
    wanted = [*map(Requirement, recipe.requires)]
    first = folder if script is None else script.root
    own_version, versions, missing = _asked(python, folder, first, [one.name for one in wanted], list(imports))
    lacks = {
        str(one): f"{one} (trainer.requires{f'; {version} is installed' if version else ''})"
        for one, version in zip(wanted, versions, strict=False)
        if _is_lacking(one, version, own_version)
    }
    # What is required may bring the rest.
    lacks = lacks or {DISTRIBUTIONS.get(name, name): f"{name} ({imports[name]})" for name in missing}
    if not lacks:
        return None
    to_install = [name for name in lacks if name != "ablations"]
    lines = [f"{shlex.quote(python)} -m pip install {shlex.join(to_install)}"] if to_install else []
    lines += [f"cp {log.__file__} {first / 'ablations.py'}"] if "ablations" in lacks else []
    return Finding(
        part=PROGRAM,
        check="packages",
        level="error" if trains_here else "warning",
        found=f"{python} lacks {', '.join(lacks.values())}",
        remedy=" and ".join(f"`{line}`" for line in lines),
    )


def _is_lacking(wanted: Requirement, version: str | None, python: str) -> bool:
    """True if a Python of this version needs a package and has none, or another version of it."""
    own = {"python_full_version": python, "python_version": ".".join(python.split(".")[:2])}
    if wanted.marker is not None and not wanted.marker.evaluate(own):
        return False
    try:
        return version is None or not wanted.specifier.contains(version, prereleases=True)
    except InvalidVersion:
        return False


def _unseen(recipe: CommandRecipe) -> Finding:
    return Finding(
        part=PROGRAM,
        check="packages",
        level="warning",
        found=f"trainer.requires was not checked, since `{shlex.join(recipe.command)}` does not show which Python runs",
        remedy="begin the command with {python} or the path of a Python, or leave out requires",
    )


def python_of(command: Sequence[str], folder: Path) -> str | None:
    """The Python that runs the program; None if the command does not show it, as with `uv run` or a container."""
    words = list(command)
    if Path(words[0]).name == "env":
        settings = [word for word in words[1:] if re.match(r"\w+=", word)]
        words = words[1 + len(settings) :]
        if not words or words[0].startswith("-") or any(map(CHOOSES_PYTHON.match, settings)):
            return None
    if words[0] == "{python}":
        return sys.executable
    found = shutil.which(words[0] if os.sep not in words[0] else str(folder / words[0]))
    if found is None or PYTHON.fullmatch(Path(found).name):
        return found
    if Path(found).name in LAUNCHERS:
        with suppress(OSError), open(found, "rb") as file:
            line = file.readline(500).decode(errors="replace").strip()
            if line.startswith("#!") and PYTHON.fullmatch(Path(line[2:]).name):
                return line[2:]
    return None


@dataclass(frozen=True, kw_only=True)
class Script:
    """The files that Python runs, in order, and the folder in which their imports are looked up first."""

    paths: tuple[Path, ...]
    root: Path


def script_of(command: Sequence[str], folder: Path) -> Script | None:
    """The script of a command that `python_of` knows; None if it is not a file of the program's folder."""
    for before, word in pairwise(command):
        path = folder / word
        if before == "-m":
            path = folder / word.replace(".", "/")
            found = next((one for one in (path.with_suffix(".py"), path / "__main__.py") if one.is_file()), None)
            if found or word not in LAUNCHING_MODULES:
                packages = [one / "__init__.py" for one in reversed(found.relative_to(folder).parents)] if found else []
                of_packages = [folder / one for one in packages[1:] if (folder / one).is_file()]
                return Script(paths=(*of_packages, found), root=folder) if found else None
        elif before == "-c":
            return None
        elif word.endswith(".py") and path.is_file():
            return Script(paths=(path,), root=path.resolve().parent)
        elif path.is_file() and not before.startswith("--") and not _starts_scripts(path):
            return None  # a script of another name, of which the next words are arguments
    return None


def _starts_scripts(program: Path) -> bool:
    return program.name in LAUNCHERS or PYTHON.fullmatch(program.name) is not None


def _asked(
    python: str, folder: Path, first: Path, distributions: list[str], modules: list[str]
) -> tuple[str, list[str | None], list[str]]:
    """The version of Python, that of each package, None if it is not there, and the modules that would not be found.

    All are empty if nothing is asked, or Python does not answer.
    """
    if distributions or modules:
        command = [python, "-c", PROBE, json.dumps([str(first), distributions, modules])]
        with suppress(OSError, subprocess.SubprocessError, ValueError, IndexError):
            done = subprocess.run(command, cwd=folder, capture_output=True, timeout=PROBE_LIMIT_S, check=True)
            version, versions, missing = json.loads(done.stdout.splitlines()[-1])
            return version, versions, missing
    return "", [], []


@dataclass
class _Walk:
    """Goes through a script in the order in which it runs, and through single files beside it that it imports."""

    root: Path
    seen: set[Path] = field(default_factory=set)
    is_over: bool = False
    """True after a line that might change what can be imported."""

    def files(self, paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
        """Results of `file` for files that run one after another."""
        for path in paths:
            yield from self.file(path)

    def file(self, path: Path) -> Iterator[tuple[str, str]]:
        """Name and place of each module that is sure to be imported: "datasets", "train.py:12"."""
        self.seen.add(path)
        try:
            yield from self._block(ast.parse(path.read_bytes()).body, path)
        except (OSError, SyntaxError, ValueError, RecursionError):
            self.is_over = True

    def _block(self, statements: Sequence[ast.stmt], path: Path) -> Iterator[tuple[str, str]]:
        for one in statements:
            if self.is_over:
                return
            match one:
                case ast.Import():
                    for alias in one.names:
                        yield from self._module(alias.name, one, path)
                    self.is_over |= any(alias.name == "sys" and alias.asname for alias in one.names)
                case ast.ImportFrom(level=0) if one.module != "sys":
                    yield from self._module(one.module or "", one, path)
                case ast.With() if all(_is_harmless(item) for item in one.items):
                    yield from self._block(one.body, path)
                case _:
                    self.is_over = not _is_harmless(one)

    def _module(self, name: str, statement: ast.stmt, path: Path) -> Iterator[tuple[str, str]]:
        top = name.partition(".")[0]
        file = self.root / f"{top}.py"
        if (self.root / top).is_dir():
            self.is_over = True  # a package of the program's own, which may do anything
        elif file.is_file():
            if file not in self.seen:
                yield from self.file(file)
        elif not self.is_over and top not in sys.stdlib_module_names:
            yield top, f"{path.name}:{statement.lineno}"


def _is_harmless(node: ast.AST) -> bool:
    """True if a piece of a script ends nothing, and leaves the modules that can be imported as they are."""
    for one in _executed(node):
        if isinstance(one, ast.Call) and not HARMLESS_CALL.fullmatch(ast.unparse(one.func)):
            return False
        if isinstance(one, ast.ImportFrom) and (one.level or one.module == "sys"):
            return False
        if isinstance(one, ast.Raise | ast.Assert) or "sys" in (getattr(one, "id", ""), getattr(one, "attr", "")):
            return False
    return True


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a piece of code without the bodies of its functions."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _executed(child)
