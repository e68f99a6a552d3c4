"""The BLAS that compiled kernels call, on one thread.

numba's `np.dot` calls the OpenBLAS of scipy. Blocks of some 32 rows are too small for its threads, and how it divides
larger products decides how their sums are rounded.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import scipy.linalg.cython_blas  # noqa: F401  # loads the library, so that the controller finds it
from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Context in which BLAS uses one thread."""
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    """The libraries found in this process; finding them takes milliseconds."""
    return ThreadpoolController()
