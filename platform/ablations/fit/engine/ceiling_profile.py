"""Profile likelihood of A: misfit of the best curve at each fixed A.

The profile does not use the prior of B. If it rises little up to A = 1, the readings alone do not bound A, and an upper
end of the posterior comes from the prior.
"""

import numpy as np

from ablations.fit.engine.family import Family
from ablations.fit.engine.noise import AR1
from ablations.fit.engine.projection import GRID_SHAPE, Nodes, Prior, box_around, box_nodes, grid_nodes
from ablations.fit.engine.sums import Sums

CHI_SQUARED_95 = 3.84
"""A ceiling whose deviance exceeds the smallest by less than this is not ruled out at 95 %."""
ZOOM_SHAPE = (15, 15)
NUM_ZOOMS = 3


def ceiling_profile(
    family: Family, x: np.ndarray, y: np.ndarray, A: np.ndarray, *, noise: AR1, prior: Prior
) -> np.ndarray:
    """The least deviance over (r, p, q) at each ceiling A, given the noise and a prior of r.

    e' Cov^-1 e + (r - value)^2 / variance, e = y - r (1 - g) - A g.
    """
    coarse = grid_nodes(family, x)
    sums = _sums(coarse, y, noise)
    least = []
    for ceiling in np.atleast_1d(A):
        deviance = _deviance(sums, float(ceiling), prior)
        found, nodes, box, shape = float(deviance.min()), coarse, family.box(x), GRID_SHAPE
        for _ in range(NUM_ZOOMS):
            best = int(np.argmin(deviance))
            box = box_around(nodes, best, box, shape, family.box(x), margin=1.5)
            nodes, shape = box_nodes(family, x, box, ZOOM_SHAPE), ZOOM_SHAPE
            deviance = _deviance(_sums(nodes, y, noise), float(ceiling), prior)
            found = min(found, float(deviance.min()))
        least.append(found)
    return np.array(least)


def _sums(nodes: Nodes, y: np.ndarray, noise: AR1) -> Sums:
    g, y, one = nodes.g @ noise.whitening.T, noise.whitening @ y, noise.whitening.sum(axis=1)
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
