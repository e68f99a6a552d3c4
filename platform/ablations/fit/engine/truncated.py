"""Standard normals truncated to an interval.

`scipy.stats.truncnorm` takes seven times as long for the 2,000 intervals of one fit, and importing it takes longer than
all other imports of a fit together.
"""

import numpy as np
from scipy.special import ndtr, ndtri

LEAST_SHARE = 1e-300
BEYOND_FLOAT = 9.0
"""Limit beyond which ndtr is 1 in float64, as is 1 - ndtr(-9)."""


def log_between(lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Log probability of a standard normal between `lo` and `hi`, accurate in both tails."""
    if lo.shape != hi.shape:
        lo, hi = np.broadcast_arrays(lo, hi)
    found = np.zeros(lo.shape)
    # For most ranges the probability is 1 in float64: the logarithm is exactly 0 and need not be computed.
    near = (lo > -BEYOND_FLOAT) | (hi < BEYOND_FLOAT)
    lo, hi = lo[near], hi[near]
    mirrored = lo > 0
    below, above = ndtr(np.where(mirrored, -hi, lo)), ndtr(np.where(mirrored, -lo, hi))
    found[near] = np.log(np.maximum(above - below, LEAST_SHARE))
    return found


def truncated_normals(lo: np.ndarray, hi: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Standard normals between `lo` and `hi`, one per entry, and the probability of each range.

    A range too far out for float64 gets probability 0 and a draw at one of its ends.
    """
    below, above = ndtr(lo), ndtr(hi)
    # 1 - ndtr loses every digit in the upper tail, so mirror it.
    mirrored = lo > 0
    below, above = np.where(mirrored, ndtr(-hi), below), np.where(mirrored, ndtr(-lo), above)
    inside = above - below
    with np.errstate(divide="ignore"):
        z = ndtri(below + inside * rng.random(lo.size))
    z = np.where(mirrored, -z, z)
    return np.clip(z, lo, hi), inside
