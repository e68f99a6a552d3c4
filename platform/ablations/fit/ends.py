"""The ends of an interval, from draws and the estimate that it is shown with.

The estimate is the curve of highest likelihood. At a bound (R_0 = 0, A = the task's ceiling) every draw lies on one
side of it, and where evaluations say little, the prior of B, which the estimate lacks, moves the draws away. A value
that no other explains the evaluations better than is no value to rule out, so the interval is the one to give way: it
reaches as far as the estimate. It only becomes wider, so it holds the truth at least as often.
"""

from typing import Literal

import numpy as np

TAILS = ((1 - 0.95) / 2, (1 + 0.95) / 2)
"""Ends of a 95 % interval."""


def ends_around(
    estimate: np.ndarray | float,
    draws: np.ndarray,
    share: float = 0.95,
    *,
    method: Literal["linear", "closest_observation"] = "linear",
) -> tuple[np.ndarray | float, np.ndarray | float]:
    """The quantiles of the draws, along their first axis, that leave out (1 - share) / 2 on each side, or the estimate
    where that lies farther out. `method` is NumPy's, which takes infinite draws for the closest observation only.

    >>> ends_around(0.0, np.array([0.0, 1.0, 2.0, 3.0, 4.0]) + 1, share=0.5)
    (0.0, 4.0)
    """
    lo, hi = np.quantile(draws, ((1 - share) / 2, (1 + share) / 2), axis=0, method=method)
    return np.minimum(lo, estimate)[()], np.maximum(hi, estimate)[()]
