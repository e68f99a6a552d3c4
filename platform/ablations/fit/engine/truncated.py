"""Standard normals between two ends.

`scipy.stats.truncnorm` takes seven times as long for the 2,000 pairs of ends of one fit, and its import longer than all
others of a fit together.
"""

import numpy as np
from scipy.special import ndtr, ndtri

LEAST_SHARE = 1e-300
BEYOND_FLOAT = 9.0
"""ndtr is 1 in float64 from here on, and 1 - ndtr(-9) too."""


def log_between(lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """ln of the probability that a standard normal lies between; in the upper tail 1 - ndtr loses every digit."""
    if lo.shape != hi.shape:
        lo, hi = np.broadcast_arrays(lo, hi)
    found = np.zeros(lo.shape)
    # Most ranges hold all that float64 can tell from 1: there the logarithm is 0 exactly, and costs nothing.
    near = (lo > -BEYOND_FLOAT) | (hi < BEYOND_FLOAT)
    lo, hi = lo[near], hi[near]
    mirrored = lo > 0
    below, above = ndtr(np.where(mirrored, -hi, lo)), ndtr(np.where(mirrored, -lo, hi))
    found[near] = np.log(np.maximum(above - below, LEAST_SHARE))
    return found


def truncated_normals(lo: np.ndarray, hi: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Standard normals between `lo` and `hi`, one per entry, and the probability of each range.

    Where a range is too far away for the arithmetic, its probability is 0 and one of its ends is drawn.
    """
    below, above = ndtr(lo), ndtr(hi)
    # In the upper tail 1 - ndtr loses every digit: mirror it.
    mirrored = lo > 0
    below, above = np.where(mirrored, ndtr(-hi), below), np.where(mirrored, ndtr(-lo), above)
    inside = above - below
    with np.errstate(divide="ignore"):
        z = ndtri(below + inside * rng.random(lo.size))
    z = np.where(mirrored, -z, z)
    return np.clip(z, lo, hi), inside
