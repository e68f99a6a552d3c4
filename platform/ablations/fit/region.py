"""The likelihood region: every curve that the readings do not speak against.

The least and largest value of any function of the curve over this region is its profile-likelihood interval, so one
set of curves gives the intervals of A, B, C_mid, R_0, of a prediction and of the compute that reaches a score.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from ablations.fit.family import Box, Family
from ablations.fit.noise import NoiseModel
from ablations.fit.projection import (
    GRID_SHAPE,
    Anchor,
    Deviance,
    Nodes,
    Solution,
    anchor_deviance,
    best_linear_part,
    box_nodes,
    grid_nodes,
    node_deviance,
)

COVERAGE = 0.95
ZOOM_SHAPE = (31, 31)
MAX_ZOOMS = 12
PLAUSIBLE_LIMITS = 5.0
"""Shapes this many limits above the best under independent noise are not worth judging under all the others."""
ANGLES = np.arange(8) * np.pi / 4
RADII = np.array([0.5, 1])


@dataclass(frozen=True, kw_only=True, eq=False)
class Region:
    """Curves (r, a, p, q) of the region, one an entry, and whether it runs out of the family's box (below, above)."""

    r: np.ndarray
    a: np.ndarray
    p: np.ndarray
    q: np.ndarray
    open_p: tuple[bool, bool]
    open_q: tuple[bool, bool]


def deviance_limit(degrees_of_freedom: int) -> float:
    """How far the deviance of a curve in the region may lie above the least one.

    (nu + 1) ln(1 + t^2 / nu), t the two-sided 95 % quantile of Student's t: a likelihood averaged over an unknown noise
    level has Student's shape. It tends to chi-squared's 3.84 for many readings.
    """
    t = float(stdtrit(degrees_of_freedom, (1 + COVERAGE) / 2))
    return (degrees_of_freedom + 1) * float(np.log1p(t**2 / degrees_of_freedom))


def likelihood_region(
    family: Family,
    x: np.ndarray,
    y: np.ndarray,
    *,
    solutions: Sequence[tuple[Anchor, Solution]],
    noise: NoiseModel,
    limit: float,
) -> Region:
    """The curves within `limit` of the least deviance, noise and anchors averaged over.

    `solutions` holds every anchor and the best curve under it; the best of these always belongs to the region.
    """
    anchors = [anchor for anchor, _ in solutions]

    def judge(curves: np.ndarray) -> np.ndarray:
        r, a, p, q = curves
        residuals = y - r[:, None] - a[:, None] * family.basis(x, p[:, None], q[:, None])
        return noise.deviance(residuals) + anchor_deviance(anchors, r)

    known = np.array([[s.r, s.a, s.p, s.q] for _, s in solutions]).T
    known_deviance = judge(known)
    best = int(np.argmin(known_deviance))
    variance = noise.long_run_variance(solutions[best][1].residuals)
    parts = [known[:, [best]]]
    for anchor, deviance in zip(anchors, known_deviance, strict=True):
        if deviance <= known_deviance[best] + limit:
            parts.append(_candidates(family, x, y, judge, variance=variance, anchor=anchor, limit=limit))
    curves = np.concatenate(parts, axis=1)
    deviance = judge(curves)
    inside = deviance <= deviance.min() + limit
    inside[0] = True
    r, a, p, q = curves[:, inside]
    box = family.box(x)
    return Region(r=r, a=a, p=p, q=q, open_p=_touches(p, box[0]), open_q=_touches(q, box[1]))


def _candidates(
    family: Family,
    x: np.ndarray,
    y: np.ndarray,
    judge: Callable[[np.ndarray], np.ndarray],
    *,
    variance: float,
    anchor: Anchor,
    limit: float,
) -> np.ndarray:
    """Curves (r, a, p, q) that fill the region under one anchor, and some beyond it.

    A grid is zoomed onto the shapes whose best curve `judge` finds within `limit`; at each of them (r, a) fills the
    ellipse that readings of `variance` allow.
    """

    def shapes_inside(nodes: Nodes) -> tuple[Deviance, np.ndarray, np.ndarray, np.ndarray]:
        deviance = node_deviance(nodes, y, variance=variance, anchor=anchor)
        r, a = best_linear_part(deviance)
        least = deviance.at(r, a)
        plausible = np.flatnonzero(least <= least.min() + PLAUSIBLE_LIMITS * limit)
        judged = judge(np.stack([r, a, nodes.p, nodes.q])[:, plausible])
        inside = plausible[judged <= judged.min() + limit]
        return deviance.of(inside), r[inside], a[inside], inside

    whole = box = family.box(x)
    nodes, shape = grid_nodes(family, x), GRID_SHAPE
    deviance, r, a, inside = shapes_inside(nodes)
    for _ in range(MAX_ZOOMS):
        zoomed = _box_around(nodes, inside, box, whole, shape)
        if _gains_little(zoomed, box, shape):
            break
        box, shape = zoomed, ZOOM_SHAPE
        nodes = box_nodes(family, x, box, shape)
        deviance, r, a, inside = shapes_inside(nodes)
    r, a = _ellipses(deviance, r, a, limit)
    p, q = (np.broadcast_to(side[inside], r.shape) for side in (nodes.p, nodes.q))
    return np.stack([r.ravel(), a.ravel(), p.ravel(), q.ravel()])


def _box_around(nodes: Nodes, inside: np.ndarray, box: Box, whole: Box, shape: tuple[int, int]) -> Box:
    """The box that holds the nodes inside and three cells more on every side, within the whole box."""
    sides = []
    for values, (lo, hi), (least, largest), num in zip((nodes.p, nodes.q), box, whole, shape, strict=True):
        margin = 3 * (hi - lo) / (num - 1)
        sides.append((max(values[inside].min() - margin, least), min(values[inside].max() + margin, largest)))
    return sides[0], sides[1]


def _gains_little(zoomed: Box, box: Box, shape: tuple[int, int]) -> bool:
    """Whether `zoomed` stays in `box`, but for a cell, and is not much smaller."""
    for (new_lo, new_hi), (lo, hi), num in zip(zoomed, box, shape, strict=True):
        cell = (hi - lo) / (num - 1)
        if new_lo < lo - 1.5 * cell or new_hi > hi + 1.5 * cell or new_hi - new_lo < 0.6 * (hi - lo):
            return False
    return True


def _ellipses(deviance: Deviance, r: np.ndarray, a: np.ndarray, limit: float) -> tuple[np.ndarray, np.ndarray]:
    """Points of {(r, a): deviance <= least + limit} at every node: the best, then some on rays to the rim or a wall.

    Rays have unit length after M = L L', M the quadratic's matrix, so D(best + t ray) = D(best) + 2 t b + t^2.
    """
    l_rr = np.sqrt(deviance.d_rr)
    l_ar = deviance.d_ra / l_rr
    l_aa = np.sqrt(np.maximum(deviance.d_aa - l_ar**2, 1e-12 * deviance.d_aa))
    ray_a = np.sin(ANGLES)[:, None] / l_aa
    ray_r = (np.cos(ANGLES)[:, None] - l_ar * ray_a) / l_rr
    b = ray_r * (deviance.d_rr * r + deviance.d_ra * a - deviance.d_r)
    b += ray_a * (deviance.d_ra * r + deviance.d_aa * a - deviance.d_a)
    length = np.sqrt(b**2 + limit) - b
    for distance, speed in ((r, -ray_r), (a, -ray_a), (1 - r - a, ray_r + ray_a)):
        length = np.where(speed > 0, np.minimum(length, distance / np.where(speed > 0, speed, 1)), length)
    steps = RADII[:, None, None] * np.maximum(length, 0)
    # Rounding must not carry a ray through the wall at which it ends.
    points_r = np.maximum(r + steps * ray_r, 0).reshape(-1, r.size)
    points_a = np.maximum(a + steps * ray_a, 0).reshape(-1, a.size)
    return np.concatenate([r[None], points_r]), np.concatenate([a[None], points_a])


def _touches(values: np.ndarray, side: tuple[float, float]) -> tuple[bool, bool]:
    return bool(values.min() <= side[0]), bool(values.max() >= side[1])
