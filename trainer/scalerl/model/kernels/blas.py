"""The BLAS that compiled kernels call, on one thread.

numba's `np.dot` calls the OpenBLAS of scipy. Blocks of some 32 rows are too small for its threads, and how it divides
larger products decides how their sums are rounded.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import scipy.linalg.cython_blas  # noqa: F401  # loads the library, so that the controller finds it
from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Context in which BLAS uses one thread."""
    blas = _blas()
    if all(library.get_num_threads() == 1 for library in blas.lib_controllers):
        return nullcontext()  # as in most runs; setting a limit takes a tenth of a small model's decode step
    return blas.limit(limits=1)


@cache
def _blas() -> ThreadpoolController:
    """The libraries found in this process; finding them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")
