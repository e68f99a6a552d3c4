"""Loads functions of your own from their files, and calls them.

Only files that belong to the run's identity can be imported: their modules come from the folder of the function, all
others from where Python finds them.
"""

import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from scalerl.durable import file_sha256, write_atomically
from scalerl.errors import Rejected
from scalerl.recipe.own import Own
from scalerl.recipe.own_files import module_of_file

_LOADING = threading.Lock()
_LOADED_FROM: dict[str, str] = {}
"""Folder and hash of the user's own modules that this process has imported."""


class OwnFailed(Rejected):
    """A user's own function cannot be loaded, raised an error, or returned an invalid value."""


class _OwnModules(MetaPathFinder):
    """Finds modules in the files of one function and nowhere else."""

    def __init__(self, own: Own) -> None:
        self.folder = Path(own.folder)
        self.files = {module_of_file(name): Path(own.folder) / name for name in own.files}
        parts = [name.split(".") for name in self.files]
        self.names = {".".join(one[:depth]) for one in parts for depth in range(1, len(one) + 1)}
        """Names of the modules, and of the folders around them."""
        hashes = {module_of_file(name): sha256 for name, sha256 in own.files.items()}
        self.sources = {name: f"{own.folder} {hashes.get(name, '')}" for name in self.names}
        """What each of them is loaded from."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in self.files:
            return spec_from_file_location(fullname, self.files[fullname])
        if fullname in self.names:  # a folder without __init__.py
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(self.folder / fullname.replace(".", "/"))]
            return spec
        return None

    def forget_others(self) -> None:
        """Forget imported modules of these names if one is from elsewhere, or from a file that was edited since."""
        if any(name in sys.modules and _LOADED_FROM.get(name) != self.sources[name] for name in self.names):
            for name in self.names & sys.modules.keys():
                del sys.modules[name]
        _LOADED_FROM.update(self.sources)


def call_own(own: Own, *given: Any) -> Any:
    """The function's answer to its input and parameters; OwnFailed names the file and line if it raises."""
    function = function_of(own)
    try:
        return function(*given, **own.parameters)
    except Exception as error:  # whatever the user's code raises
        raise OwnFailed(f"{place_of(own, function, error)}: {raised(own, error)}") from error


def function_of(own: Own) -> Callable[..., Any]:
    """The function, loaded once per process; OwnFailed if its files have changed or cannot be imported."""
    with _LOADING:
        return _loaded(own.function, own.folder, own.folder_sha256)


@lru_cache
def _loaded(function: str, folder: str, folder_sha256: tuple[str, ...]) -> Callable[..., Any]:
    own = Own(function=function, folder=folder, folder_sha256=folder_sha256)
    for name, sha256 in own.files.items():
        path = Path(folder) / name
        if not path.is_file() or file_sha256(path) != sha256:
            raise OwnFailed(f"{path} is missing or has changed since the run was planned; restore the file")
    finder = _OwnModules(own)
    finder.forget_others()
    sys.meta_path.insert(0, finder)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        module = import_module(own.module)
    except Exception as error:  # whatever the user's code raises
        sys.meta_path.remove(finder)
        place = _line_in(Path(folder), error) or f"{own.file}:1"
        raise OwnFailed(f"{place}: {own.module} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.dont_write_bytecode = writes
    found = getattr(module, own.function_name, None)
    if not callable(found):
        defined = [name for name, one in vars(module).items() if callable(one) and name[0] != "_"]
        raise OwnFailed(
            f"{own.file}:1: defines no function {own.function_name!r}; it has {', '.join(defined) or 'none'}"
        )
    return found


def raised(own: Own, error: BaseException) -> str:
    """Description of the error that the function raised."""
    return f"{own.function_name} raised {type(error).__name__}: {error}"


def place_of(own: Own, function: Callable[..., Any], error: BaseException | None = None) -> str:
    """File and line: the last line of the user's own code that led to the error, or the start of the function."""
    found = error and _line_in(Path(own.folder), error)
    if found:
        return found
    code = getattr(function, "__code__", None) or getattr(getattr(function, "__init__", None), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else f"{own.file}:1"


def _line_in(folder: Path, error: BaseException) -> str | None:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = [one for one in traceback.extract_tb(error.__traceback__) if Path(one.filename).is_relative_to(folder)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None


def copy_files(own: Own, folder: Path) -> Own:
    """The function with its files copied into `folder`, where existing files stay.

    Raises OwnFailed if a file has changed since its hash was taken.
    """
    for name, sha256 in own.files.items():
        copy, source = folder / name, Path(own.folder) / name
        if copy.is_file() and file_sha256(copy) == sha256:
            continue
        if not source.is_file() or file_sha256(source) != sha256:
            raise OwnFailed(f"{source} has changed since this command read it; repeat the command")
        copy.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(copy, source.read_bytes())
    return own.moved(folder)
