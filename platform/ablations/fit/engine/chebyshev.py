"""Polynomials in the shape (p, q) of a curve, through Chebyshev points of a box.

What varies smoothly over a small box is a polynomial of low degree, up to rounding; how fast its last coefficients fall
shows whether it is (Trefethen 2013, "Approximation theory and approximation practice", chapters 3 and 8).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from ablations.fit.engine.family import Box

LAST_TERMS = 2
"""Number of last coefficients, along p and along q, that stand for all that are left out."""


@dataclass(frozen=True, kw_only=True)
class Polynomials:
    """Polynomials over `box` with `num` coefficients along p, and along q unless the family lacks q."""

    box: Box
    num: int

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """p and q of the Chebyshev points, one per entry."""
        p, q = (
            np.array([lo]) if hi == lo else (lo + hi) / 2 + (hi - lo) / 2 * _points(self.num) for lo, hi in self.box
        )
        return np.repeat(p, q.size), np.tile(q, p.size)

    def coefficients(self, values: np.ndarray) -> np.ndarray:
        """Coefficients, shape (..., num along p, num along q), of the polynomials with these `values` (..., num_points)
        at the points."""
        along_p, along_q = (_from_values(1 if hi == lo else self.num) for lo, hi in self.box)
        return along_p @ values.reshape(*values.shape[:-1], len(along_p), len(along_q)) @ along_q.T

    def on_grid(self, coefficients: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Values (..., p.size * q.size) at every pair of these p and q, p slowest."""
        found = self._terms(p, 0) @ coefficients @ self._terms(q, 1).T
        return found.reshape(*found.shape[:-2], -1)

    def terms(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """The product of polynomials that each coefficient multiplies, at each shape; shape (p.size, num_points)."""
        along_p, along_q = self._terms(p, 0), self._terms(q, 1)
        return (along_p[:, :, None] * along_q[:, None, :]).reshape(p.size, -1)

    def _terms(self, values: np.ndarray, axis: int) -> np.ndarray:
        lo, hi = self.box[axis]
        if hi == lo:
            return np.ones((values.size, 1))
        return chebvander((2 * values - lo - hi) / (hi - lo), self.num - 1)


def last_coefficients(coefficients: np.ndarray) -> np.ndarray:
    """The largest of the last coefficients of each polynomial: a limit on what higher ones would add."""
    ends = [coefficients[..., -LAST_TERMS:, :]] if coefficients.shape[-2] > 1 else []
    ends += [coefficients[..., -LAST_TERMS:]] if coefficients.shape[-1] > 1 else []
    return np.max([np.abs(end).max(axis=(-2, -1)) for end in ends], axis=0)


def _points(num: int) -> np.ndarray:
    return -np.cos(np.pi * np.arange(num) / (num - 1))


@cache
def _from_values(num: int) -> np.ndarray:
    """The matrix that takes values at the points to coefficients."""
    return np.ones((1, 1)) if num == 1 else np.linalg.inv(chebvander(_points(num), num - 1))
