"""Weighted sums over readings, sufficient to evaluate a curve r (1 - g) + A g, in the eigenbasis of the noise."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums:
    """Sums of products of u = 1 - g, g and y, weighted by the precision of each reading.

    Shapes (num_s, num_nodes), y_y (num_s, 1); for `sums_of_each` (num_curves,). u is summed separately, because for g
    close to 1 differences of sums over 1 and g lose precision.
    """

    u_u: np.ndarray
    u_g: np.ndarray
    g_g: np.ndarray
    u_y: np.ndarray
    g_y: np.ndarray
    y_y: np.ndarray


def weighted_sums(g: np.ndarray, y: np.ndarray, one: np.ndarray, precisions: np.ndarray) -> Sums:
    """Sums for every noise and node; `g` is (nodes, points), `precisions` (num_s, points), in the noise eigenbasis."""
    u = one - g
    return Sums(
        u_u=precisions @ (u**2).T,
        u_g=precisions @ (u * g).T,
        g_g=precisions @ (g**2).T,
        u_y=precisions @ (u * y).T,
        g_y=precisions @ (g * y).T,
        y_y=(precisions @ y**2)[:, None],
    )


def sums_of_each(g: np.ndarray, y: np.ndarray, one: np.ndarray, precisions: np.ndarray) -> Sums:
    """Sums for curves with one noise each; `g` and `precisions` are (num_curves, points)."""
    u = one - g
    weighted_u, weighted_g = precisions * u, precisions * g
    return Sums(
        u_u=np.einsum("ij,ij->i", weighted_u, u),
        u_g=np.einsum("ij,ij->i", weighted_u, g),
        g_g=np.einsum("ij,ij->i", weighted_g, g),
        u_y=weighted_u @ y,
        g_y=weighted_g @ y,
        y_y=precisions @ y**2,
    )
