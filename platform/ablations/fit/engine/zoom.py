"""Finds the region of shapes that holds the posterior: zooms onto plausible shapes, and widens again if needed."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ablations.fit.engine.anchor import Anchor
from ablations.fit.engine.family import Box, Family
from ablations.fit.engine.projection import (
    GRID_SHAPE,
    ROUGH_SHAPE,
    Nodes,
    box_around,
    box_nodes,
    grid_nodes,
    least_deviances,
    rough_nodes,
)

FINE_SHAPE = (41, 41)
MAX_ZOOMS = 8
PLAUSIBLE = 26.0
"""Largest deviance above the least that is kept while zooming: e^-13 of the best likelihood."""


class Fineness(NamedTuple):
    """Resolution of a posterior grid: Fineness(shape=(41, 41), edge_share=1e-3, is_rough=False)."""

    shape: tuple[int, int]
    """Nodes in p and q."""
    edge_share: float
    """Largest fraction of the probability allowed at the edge of the zoomed grid."""
    is_rough: bool = False
    """True if the zoom begins on a rough grid."""


FINE = Fineness(shape=FINE_SHAPE, edge_share=1e-3)
COARSE = Fineness(shape=(15, 15), edge_share=1e-2)
"""Resolution for the families beside eq. 1, whose draws are also jittered within cells and reweighted exactly."""
ROUGH = Fineness(shape=(15, 15), edge_share=1e-2, is_rough=True)
"""Resolution for the first parts of finished runs, of which a sweep has hundreds."""


def zoomed_box(
    family: Family,
    x: np.ndarray,
    y: np.ndarray,
    *,
    anchors: Sequence[Anchor],
    variance: float,
    fineness: Fineness,
) -> Box:
    """The box around all shapes plausible under independent readings of `variance`, found on grids of this fineness."""

    def plausible(nodes: Nodes) -> np.ndarray:
        penalty = -2 * (log_probability + family.log_prior(nodes.p, nodes.q))
        _, found = least_deviances([nodes], y, variance=variance, priors=priors, penalty=penalty, within=PLAUSIBLE)
        least = found.min(axis=0)
        return np.flatnonzero(least <= least.min() + PLAUSIBLE)

    priors = [anchor.prior(variance) for anchor in anchors]
    log_probability = np.log([[anchor.probability] for anchor in anchors])
    whole = box = family.box(x)
    nodes, shape = (rough_nodes(family, x), ROUGH_SHAPE) if fineness.is_rough else (grid_nodes(family, x), GRID_SHAPE)
    for _ in range(MAX_ZOOMS):
        zoomed = box_around(nodes, plausible(nodes), box, shape, whole, margin=1.0)
        if all(
            new[1] - new[0] > 0.6 * (old[1] - old[0]) for new, old in zip(zoomed, box, strict=True) if old[1] > old[0]
        ):
            return zoomed
        box, shape = zoomed, fineness.shape
        nodes = box_nodes(family, x, box, shape)
    return box


def widened(density: np.ndarray, box: Box, whole: Box, fineness: Fineness) -> Box | None:
    """The box widened on sides where more than `fineness` allows of the probability lies at its edge and the family
    extends further; None if no side needs widening. `density` is that of each node, up to a constant.
    """
    mass = (density / density.sum()).reshape(fineness.shape[0], -1)
    sides, is_wider = [], False
    for axis, ((lo, hi), (least, largest)) in enumerate(zip(box, whole, strict=True)):
        at, half, (new_lo, new_hi) = mass.sum(axis=1 - axis), 0.5 * (hi - lo), (lo, hi)
        if lo > least and at[0] > fineness.edge_share:
            new_lo, is_wider = max(least, lo - half), True
        if hi < largest and at[-1] > fineness.edge_share:
            new_hi, is_wider = min(largest, hi + half), True
        sides.append((new_lo, new_hi))
    return (sides[0], sides[1]) if is_wider else None
