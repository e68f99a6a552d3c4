"""Profile likelihood of A: misfit of the best curve at each fixed A.

The profile does not use the prior of B. If it rises little up to A = 1, the readings alone do not bound A, and an upper
end of the posterior comes from the prior.
"""

import numpy as np

from ablations.fit.engine.family import Family
from ablations.fit.engine.noise import AR1, FEW_READINGS
from ablations.fit.engine.projection import GRID_SHAPE, Nodes, Prior, box_around, box_nodes, grid_nodes
from ablations.fit.engine.sums import Sums

CHI_SQUARED_95 = 3.84
"""A ceiling whose deviance exceeds the smallest by less than this is not ruled out at 95 %."""
ZOOM_SHAPE = (15, 15)
NUM_ZOOMS = 3
ROUNDING_SHARE = 1e-12
"""More than the rounding of a deviance, as a share of that of a curve at 0."""


def ceiling_profile(
    family: Family, x: np.ndarray, y: np.ndarray, A: np.ndarray, *, noise: AR1, prior: Prior
) -> np.ndarray:
    """The least deviance over (r, p, q) at each ceiling A, given the noise and a prior of r.

    e' Cov^-1 e + (r - value)^2 / variance, e = y - r (1 - g) - A g.

    Of many readings, only those nodes of the coarse grid are computed whose deviance under a larger, independent noise
    does not exceed that of one node under this noise: no other node can be the best.
    """
    coarse, whole = grid_nodes(family, x), family.box(x)
    white = noise.whiten(np.stack([np.ones(y.size), y], axis=1)).T

    def sums(g: np.ndarray) -> Sums:
        return _sums(noise.whiten(g.T).T, *white)

    is_short = y.size <= FEW_READINGS
    of_coarse = sums(coarse.g) if is_short else _equal_sums(coarse, y, noise.most_variance)
    least = []
    for ceiling in map(float, np.atleast_1d(A)):
        found, near = _deviance(of_coarse, ceiling, prior), None
        if not is_short:
            limit = float(_deviance(sums(coarse.g[[found.argmin()]]), ceiling, prior)[0])
            near = np.flatnonzero(found <= limit + ROUNDING_SHARE * float(of_coarse.y_y))
            found = _deviance(sums(coarse.g[near]), ceiling, prior)
        best, lowest = int(found.argmin()), float(found.min())
        best = best if near is None else int(near[best])
        nodes, box, shape = coarse, whole, GRID_SHAPE
        for _ in range(NUM_ZOOMS):
            box = box_around(nodes, best, box, shape, whole, margin=1.5)
            nodes, shape = box_nodes(family, x, box, ZOOM_SHAPE), ZOOM_SHAPE
            found = _deviance(sums(nodes.g), ceiling, prior)
            best, lowest = int(found.argmin()), min(lowest, float(found.min()))
        least.append(lowest)
    return np.array(least)


def _equal_sums(nodes: Nodes, y: np.ndarray, variance: float) -> Sums:
    """The sums of every node for independent readings of this variance."""
    g_g, g, g_y = nodes.sum_gg / variance, nodes.sum_g / variance, nodes.sum_gy(y) / variance
    return Sums(
        u_u=y.size / variance - 2 * g + g_g,
        u_g=g - g_g,
        g_g=g_g,
        u_y=y.sum() / variance - g_y,
        g_y=g_y,
        y_y=np.array(y @ y / variance),
    )


def _sums(g: np.ndarray, one: np.ndarray, y: np.ndarray) -> Sums:
    """The sums of whitened curves, one a row."""
    u, g_g, g_y = one - g, np.einsum("ij,ij->i", g, g), g @ y
    return Sums(
        u_u=np.einsum("ij,ij->i", u, u), u_g=g @ one - g_g, g_g=g_g, u_y=one @ y - g_y, g_y=g_y, y_y=np.array(y @ y)
    )


def _deviance(sums: Sums, A: float, prior: Prior) -> np.ndarray:
    """Deviance of r (1 - g) + A g at every node, for the best r between 0 and A."""
    # With z = y - A g.
    u_z = sums.u_y - A * sums.u_g
    z_z = sums.y_y - 2 * A * sums.g_y + A**2 * sums.g_g
    r = np.clip((u_z + prior.value / prior.variance) / (sums.u_u + 1 / prior.variance), 0, A)
    return z_z - 2 * r * u_z + r**2 * sums.u_u + (r - prior.value) ** 2 / prior.variance
