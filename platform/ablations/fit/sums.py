"""Sums over readings that hold all a curve linear in (r, a) needs to be judged, in the axes of the noise."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums:
    """Sums over readings, weighted by the precision of each: of 1 and y (per s), of g (per s and node)."""

    one_one: np.ndarray
    one_y: np.ndarray
    y_y: np.ndarray
    g_one: np.ndarray
    g_g: np.ndarray
    g_y: np.ndarray


def weighted_sums(g: np.ndarray, y: np.ndarray, one: np.ndarray, precisions: np.ndarray) -> Sums:
    """All in the axes in which the covariance is diagonal; `g` of (nodes, points), `precisions` of (num_s, points)."""
    return Sums(
        one_one=(precisions @ one**2)[:, None],
        one_y=(precisions @ (one * y))[:, None],
        y_y=(precisions @ y**2)[:, None],
        g_one=precisions @ (g * one).T,
        g_g=precisions @ (g**2).T,
        g_y=precisions @ (g * y).T,
    )
