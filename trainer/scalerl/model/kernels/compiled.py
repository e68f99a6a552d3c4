"""Functions compiled by numba; their machine code is kept for later processes.

A process runs no code but what is kept. Code that numba 0.65 has just compiled and the same code read from its cache
round differently, so that the first run of an install would differ from all others. What is missing is therefore
compiled by a process of its own: all kernels at once (`scalerl.model.first_use`), or one that these did not need.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numba
from filelock import FileLock
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

from scalerl.model.kernels.kept_code import DIGEST, HERE, mark_used

F = TypeVar("F", bound=Callable[..., Any])

FASTMATH = {"reassoc", "contract", "arcp", "nsz"}
"""Sums may be reordered so that they use vectors; NaN and infinity stay what they are, since divergence is found by
them."""
COMPILES = "SCALERL_COMPILES_KERNELS"
"""Variable of the process that compiles."""
CUT_SHORT = (EOFError, pickle.UnpicklingError)
"""What a file raises of which only the beginning was copied or written."""
_KERNELS: list[Any] = []
"""The kernels that this process has declared."""


def folder_of_code() -> Path:
    """Where this process finds kept code: beside the sources, or in NUMBA_CACHE_DIR."""
    return Path(numba.config.CACHE_DIR or HERE / "__pycache__") / DIGEST  # type: ignore


class _ByContent(_CacheLocator):
    """Keeps code by what it was made of; numba would also ask for the folder and the time of its source."""

    def __init__(self, line: int) -> None:
        self._line = line

    def get_cache_path(self) -> Any:
        """The folder for the sources of all kernels."""
        return str(folder_of_code())

    def get_source_stamp(self) -> Any:
        """The sources of all kernels."""
        return DIGEST

    def get_disambiguator(self) -> Any:
        """The line of the function."""
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Any, py_file: Any) -> Any:
        """Also if the folder cannot be written: it may hold a copy of what another has compiled."""
        return cls(py_func.__code__.co_firstlineno)


class _Code(CompileResultCacheImpl):
    _locator_classes: ClassVar[list[type]] = [_ByContent]


class _Kept(FunctionCache):
    """The cache of a function, which has another process compile what is missing."""

    _impl_class = _Code

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.function = function

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kept code of a signature; None, so that this process compiles it, only if no other could."""
        mark_used(Path(self.cache_path))
        found = self._kept(sig, target_context)
        if COMPILES in os.environ:
            return found
        asked = (self.function.__module__, self.function.__name__, sig)
        with suppress(OSError):  # the folder cannot be written
            Path(self.cache_path).mkdir(parents=True, exist_ok=True)
            for what in (None, asked):
                if found is None:
                    with FileLock(Path(self.cache_path) / "kernels.lock"):
                        found = self._kept(sig, target_context)
                        if found is None:
                            _compile_elsewhere(what)
                    found = found or self._kept(sig, target_context)
        return found

    def signatures(self, target_context: Any) -> list[Any]:
        """The signatures whose code is kept for this processor."""
        target_context.refresh()
        codegen = target_context.codegen()
        try:
            keys = list(self._cache_file._load_index())
        except (OSError, *CUT_SHORT):
            return []
        return [key[0] for key in keys if key == self._index_key(key[0], codegen)]

    def _kept(self, sig: Any, target_context: Any) -> Any:
        """The kept code; None if there is none, or if its files were cut short, which are then begun anew."""
        try:
            return super().load_overload(sig, target_context)
        except CUT_SHORT:
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code if the folder can be written."""
        with suppress(OSError, *CUT_SHORT):
            super().save_overload(sig, data)


def kernel(function: F, fastmath: set[str] = FASTMATH) -> F:
    """The function, compiled when it is first called; in every process anew if no folder can be written."""
    made: Any = numba.njit(fastmath=fastmath, error_model="numpy", nogil=True)(function)
    made._cache = _Kept(function)
    _KERNELS.append(made)
    return made


def load_kept() -> None:
    """Load the code kept for the kernels declared so far, and run none of it.

    Kernels that others call are left out: their code is part of the callers', which would use the one loaded by itself
    instead, and that is compiled, and so rounds, differently.
    """
    functions = [(made.py_func.__globals__, name) for made in _KERNELS for name in made.py_func.__code__.co_names]
    called = [names.get(name) for names, name in functions]
    for made in _KERNELS:
        if not any(made is one for one in called):
            for signature in made._cache.signatures(made.targetctx):
                made.compile(signature)


def _compile_elsewhere(asked: tuple[str, str, Any] | None) -> None:
    """Compile one signature of one kernel, or with None whatever a small model needs."""
    path = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {COMPILES: "1", "PYTHONPATH": path}
    command = [sys.executable, "-P", "-m", "scalerl.model.first_use"]
    subprocess.run(
        command, input=pickle.dumps(asked) if asked else b"", env=environment, capture_output=True, check=False
    )
