"""Standard normals truncated to an interval.

`scipy.stats.truncnorm` takes seven times as long for the 2,000 intervals of one fit, and importing it takes longer than
all other imports of a fit together.
"""

import numpy as np
from scipy.special import ndtr, ndtri

LEAST_SHARE = 1e-300


def log_between(lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Log probability of a standard normal between `lo` and `hi`, accurate in both tails."""
    # Mirrored so that the nearer end is above: P(z < near) - P(z < -far).
    near, far = np.minimum(-lo, hi), np.maximum(-lo, hi)
    return np.log(np.maximum(ndtr(near) - ndtr(-far), LEAST_SHARE))


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
