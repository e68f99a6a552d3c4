"""Functions compiled by numba; their machine code is kept for later processes.

A process runs no code but what is kept. Code that numba 0.65 has just compiled and the same code read from its cache
round differently, so that the first run of an install would differ from all others. What is missing is therefore
compiled by a process of its own: all kernels at once (`scalerl.model.first_use`), or one that these did not need.

numba's cache of a function does not notice changes in the other files of this folder, so that the sources of all of
them decide where machine code is kept.
"""

import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from filelock import FileLock

F = TypeVar("F", bound=Callable[..., Any])

FASTMATH = {"reassoc", "contract", "arcp", "nsz"}
"""Sums may be reordered so that they use vectors; NaN and infinity stay what they are, since divergence is found by
them."""
COMPILES = "SCALERL_COMPILES_KERNELS"
"""Variable of the process that compiles."""


def _folder() -> str:
    here = Path(__file__).parent
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(here.glob("*.py"))))
    return str(here / "__pycache__" / digest.hexdigest()[:16])


def kernel(function: F, fastmath: set[str] = FASTMATH) -> F:
    """The function, compiled when it is first called; in every process anew if no folder can be written."""
    options = {"fastmath": fastmath, "error_model": "numpy", "nogil": True}
    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, config.CACHE_DIR or _folder()
    made: Any
    try:
        made = numba.njit(cache=True, **options)(function)
        if COMPILES not in os.environ:
            made._cache = _Kept(made._cache, function)
    except RuntimeError:  # no folder can be written
        made = numba.njit(**options)(function)
    finally:
        config.CACHE_DIR = before
    return made


class _Kept:
    """The cache of a function, which has another process compile what is missing."""

    def __init__(self, cache: Any, function: Callable[..., Any]) -> None:
        self.cache, self.function = cache, function

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cache, name)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The kept code of a signature; None, so that this process compiles it, only if no other could."""
        found = self.cache.load_overload(signature, target)
        asked = (self.function.__module__, self.function.__name__, signature)
        for what in (None, asked):
            if found is None:
                with FileLock(Path(self.cache.cache_path).parent / "kernels.lock"):
                    found = self.cache.load_overload(signature, target)
                    if found is None:
                        _compile_elsewhere(what)
                found = found or self.cache.load_overload(signature, target)
        return found


def _compile_elsewhere(asked: tuple[str, str, Any] | None) -> None:
    """Compile one signature of one kernel, or with None whatever a small model needs."""
    path = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {COMPILES: "1", "PYTHONPATH": path}
    command = [sys.executable, "-m", "scalerl.model.first_use"]
    subprocess.run(command, input=pickle.dumps(asked), env=environment, capture_output=True, check=False)
