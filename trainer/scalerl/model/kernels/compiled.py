"""Functions compiled by numba; their machine code is kept for later processes.

numba's cache of a function does not notice changes in the other files of this folder, so that the sources of all of
them decide where machine code is kept.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

FASTMATH = {"reassoc", "contract", "arcp", "nsz"}
"""Sums may be reordered so that they use vectors; NaN and infinity stay what they are, since divergence is found by
them."""


def _folder() -> str:
    here = Path(__file__).parent
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(here.glob("*.py"))))
    return str(here / "__pycache__" / digest.hexdigest()[:16])


def kernel(function: F, fastmath: set[str] = FASTMATH) -> F:
    """The function, compiled when it is first called; in every process anew if no folder can be written."""
    compiler, options = numba.njit, {"fastmath": fastmath, "error_model": "numpy", "nogil": True}
    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, config.CACHE_DIR or _folder()
    made: Any
    try:
        made = compiler(cache=True, **options)(function)
    except RuntimeError:  # no folder can be written
        made = compiler(**options)(function)
    finally:
        config.CACHE_DIR = before
    return made
