"""Finds the region of shapes that holds the posterior: zooms onto plausible shapes, and widens again if needed."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ablations.fit.engine.anchor import Anchor
from ablations.fit.engine.family import Box, Family
from ablations.fit.engine.projection import (
    GRID_SHAPE,
    Nodes,
    best_linear_part,
    box_around,
    box_nodes,
    grid_nodes,
    node_deviances,
)

FINE_SHAPE = (41, 41)
MAX_ZOOMS = 8
PLAUSIBLE = 26.0
"""Largest deviance above the least that is kept while zooming: e^-13 of the best likelihood."""


class Fineness(NamedTuple):
    """Resolution of a posterior grid: Fineness(shape=(41, 41), edge_share=1e-3)."""

    shape: tuple[int, int]
    """Nodes in p and q."""
    edge_share: float
    """Largest fraction of the probability allowed at the edge of the zoomed grid."""


FINE = Fineness(shape=FINE_SHAPE, edge_share=1e-3)
COARSE = Fineness(shape=(15, 15), edge_share=1e-2)
"""Resolution for the families beside eq. 1, whose draws are also jittered within cells and reweighted exactly."""


def zoomed_box(
    family: Family,
    x: np.ndarray,
    y: np.ndarray,
    *,
    anchors: Sequence[Anchor],
    variance: float,
    finer: tuple[int, int],
) -> Box:
    """The box around all shapes plausible under independent readings of `variance`, found on grids of shape `finer`."""

    def plausible(nodes: Nodes) -> np.ndarray:
        least = np.full(nodes.p.size, np.inf)
        deviances = node_deviances(nodes, y, variance=variance, priors=[one.prior(variance) for one in anchors])
        for anchor, deviance in zip(anchors, deviances, strict=True):
            r, a = best_linear_part(deviance)
            least = np.minimum(least, deviance.at(r, a) - 2 * np.log(anchor.probability))
        least -= 2 * family.log_prior(nodes.p, nodes.q)
        return np.flatnonzero(least <= least.min() + PLAUSIBLE)

    whole = box = family.box(x)
    nodes = grid_nodes(family, x)
    shape = GRID_SHAPE
    for _ in range(MAX_ZOOMS):
        zoomed = box_around(nodes, plausible(nodes), box, shape, whole, margin=1.0)
        if all(
            new[1] - new[0] > 0.6 * (old[1] - old[0]) for new, old in zip(zoomed, box, strict=True) if old[1] > old[0]
        ):
            return zoomed
        box, shape = zoomed, finer
        nodes = box_nodes(family, x, box, shape)
    return box


def widened(nodes: Nodes, log_density: np.ndarray, box: Box, whole: Box, edge_share: float) -> Box | None:
    """The box widened on sides where more than `edge_share` of the probability lies at its edge and the family extends
    further; None if no side needs widening.
    """
    mass = np.exp(log_density - log_density.max()).sum(axis=(0, 1, 2))
    mass /= mass.sum()
    sides, is_wider = [], False
    for values, (lo, hi), (least, largest) in zip((nodes.p, nodes.q), box, whole, strict=True):
        new_lo, new_hi = lo, hi
        if lo > least and mass[values == lo].sum() > edge_share:
            new_lo, is_wider = max(least, lo - 0.5 * (hi - lo)), True
        if hi < largest and mass[values == hi].sum() > edge_share:
            new_hi, is_wider = min(largest, hi + 0.5 * (hi - lo)), True
        sides.append((new_lo, new_hi))
    return (sides[0], sides[1]) if is_wider else None
