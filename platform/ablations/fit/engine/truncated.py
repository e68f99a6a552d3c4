"""Standard normals truncated to an interval.

`scipy.stats.truncnorm` takes seven times as long for the 2,000 intervals of one fit, and importing it takes longer than
all other imports of a fit together.
"""

import numpy as np
from scipy.special import ndtr, ndtri

LEAST_SHARE = 1e-300
NARROW_WIDTH = 1e-8
"""Width below which the density is equal all over an interval, and a difference of two probabilities has few digits."""
FARTHEST_OUT = 40.0
"""Distance from 0 at which float64 has no density left."""


def log_between(lo: np.ndarray, hi: np.ndarray, width: np.ndarray | None = None) -> np.ndarray:
    """Log probability of a standard normal between `lo` and `hi`, accurate in both tails.

    `width` is hi - lo, of which rounding may leave nothing; not needed where no range is narrow.
    """
    # Mirrored so that the nearer end is above: P(z < near) - P(z < -far).
    near, far = np.minimum(-lo, hi), np.maximum(-lo, hi)
    inside = ndtr(near) - ndtr(-far)
    return np.log(np.maximum(inside if width is None else _inside(inside, lo, width), LEAST_SHARE))


def truncated_normals(
    lo: np.ndarray, hi: np.ndarray, width: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Standard normals between `lo` and `hi` = lo + width, one per entry, as distances from `lo`; and the probability
    of each range.

    A range too far out for float64 gets probability 0 and a draw at one of its ends.
    """
    below, above = ndtr(lo), ndtr(hi)
    # 1 - ndtr loses every digit in the upper tail, so mirror it.
    mirrored = lo > 0
    below, above = np.where(mirrored, ndtr(-hi), below), np.where(mirrored, ndtr(-lo), above)
    inside, share = above - below, rng.random(lo.size)
    with np.errstate(divide="ignore"):
        z = ndtri(below + inside * share)
    distance = np.clip(np.where(mirrored, -z, z) - lo, 0, width)
    return np.where(width < NARROW_WIDTH, share * width, distance), _inside(inside, lo, width)


def _inside(difference: np.ndarray, lo: np.ndarray, width: np.ndarray) -> np.ndarray:
    """The probability of each range: the difference of those of its ends, but of a narrow one width times density."""
    narrow = width < NARROW_WIDTH
    if narrow.any():
        middle = np.minimum(np.abs(lo[narrow] + width[narrow] / 2), FARTHEST_OUT)
        difference[narrow] = width[narrow] * np.exp(-0.5 * middle**2) / np.sqrt(2 * np.pi)
    return difference
