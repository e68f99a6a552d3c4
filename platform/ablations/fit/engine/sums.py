"""Weighted sums over readings, sufficient to evaluate a curve r (1 - g) + A g, in the eigenbasis of the noise."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums:
    """Sums of products of u = 1 - g, g and y, weighted by the precision of each reading.

    Shapes (..., num_s, num_nodes), y_y (..., num_s, 1); for `sums_of_each` (num_curves,). u^2 is summed by itself,
    because for g close to 1 a difference of sums over 1 and g would leave only rounding.
    """

    u_u: np.ndarray
    u_g: np.ndarray
    g_g: np.ndarray
    u_y: np.ndarray
    g_y: np.ndarray
    y_y: np.ndarray


def weighted_sums(g: np.ndarray, y: np.ndarray, one: np.ndarray, precisions: np.ndarray) -> Sums:
    """Sums for every noise and node; `g` is (points, nodes), `precisions` (num_s, points), in the noise eigenbasis.

    All may have more dimensions before these.
    """
    u = one[..., None] - g
    weighted_y, weighted_1 = precisions * y[..., None, :], precisions * one[..., None, :]
    g_g, g_y = precisions @ (g * g), weighted_y @ g
    return Sums(
        u_u=precisions @ np.square(u, out=u),
        u_g=weighted_1 @ g - g_g,
        g_g=g_g,
        u_y=weighted_y @ one[..., None] - g_y,
        g_y=g_y,
        y_y=weighted_y @ y[..., None],
    )


def sums_of_each(g: np.ndarray, y: np.ndarray, one: np.ndarray, precisions: np.ndarray) -> Sums:
    """Sums for curves with one noise each; `g` and `precisions` are (num_curves, points)."""
    u, weighted_g = one - g, precisions * g
    g_g, g_y = np.einsum("ij,ij->i", weighted_g, g), weighted_g @ y
    return Sums(
        u_u=np.einsum("ij,ij->i", precisions, np.square(u, out=u)),
        u_g=weighted_g @ one - g_g,
        g_g=g_g,
        u_y=precisions @ (one * y) - g_y,
        g_y=g_y,
        y_y=precisions @ y**2,
    )
