"""Variable projection: the best (r, a) in closed form at every grid shape (p, q), then a polish of the best node.

Golub and Pereyra (1973), "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
separate". No random starts are needed, because the grid covers the family's whole box.

The deviance to minimise is -2 ln likelihood up to a constant:

    sum_i (y_i - r - a g_i)^2 / variance + (r - prior.value)^2 / prior.variance
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ablations.fit.engine.family import Box, Family, SmoothFamily

GRID_SHAPE = (81, 41)
"""Nodes in p and q."""
MAX_POLISH_STEPS = 60
TINY = 1e-300
"""Avoids division by zero if g is 0 or 1 at all readings: one edge then has no slope, and any point on it is a
solution."""


@dataclass(frozen=True, kw_only=True)
class Prior:
    """A Gaussian prior r ~ N(value, variance). An infinite variance carries no information.

    Prior(value=0.31, variance=2.5e-5)
    """

    value: float = 0.0
    variance: float = np.inf


@dataclass(frozen=True, kw_only=True, eq=False)
class Nodes:
    """Shapes (p, q), one per row, with their basis g and the sums needed by the closed form."""

    p: np.ndarray
    q: np.ndarray
    g: np.ndarray
    sum_g: np.ndarray
    sum_gg: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Deviance:
    """The deviance at every node, as a quadratic in (r, a)."""

    d_0: float
    d_r: float
    d_rr: float
    d_a: np.ndarray
    d_ra: np.ndarray
    d_aa: np.ndarray

    def at(self, r: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Evaluate d_0 - 2 (r d_r + a d_a) + r^2 d_rr + 2 r a d_ra + a^2 d_aa."""
        return self.d_0 - 2 * (r * self.d_r + a * self.d_a) + r**2 * self.d_rr + a * (2 * r * self.d_ra + a * self.d_aa)

    def of(self, rows: np.ndarray) -> "Deviance":
        """The deviance at some of the nodes."""
        return Deviance(
            d_0=self.d_0, d_r=self.d_r, d_rr=self.d_rr, d_a=self.d_a[rows], d_ra=self.d_ra[rows], d_aa=self.d_aa[rows]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """The best curve r + a g(p, q), and its Jacobian over (r, a, p, q)."""

    r: float
    a: float
    p: float
    q: float
    residuals: np.ndarray
    jacobian: np.ndarray


def solve(family: SmoothFamily, x: np.ndarray, y: np.ndarray, *, variance: float, prior: Prior) -> Solution:
    """The curve of least deviance over the family's box, for readings `y` of equal `variance` at `x` = ln C."""
    nodes = grid_nodes(family, x)
    (deviance,) = node_deviances(nodes, y, variance=variance, priors=[prior])
    best = int(np.argmin(deviance.at(*best_linear_part(deviance))))
    return polish(family, x, y, float(nodes.p[best]), float(nodes.q[best]), variance=variance, prior=prior)


def grid_nodes(family: Family, x: np.ndarray) -> Nodes:
    """The dense grid over the family's whole box."""
    return _cached_grid(family, x.tobytes())


@lru_cache(maxsize=32)
def _cached_grid(family: Family, x_bytes: bytes) -> Nodes:
    # Variants of a sweep are evaluated at the same compute values, and this basis costs more than the rest of a fit.
    x = np.frombuffer(x_bytes)
    return box_nodes(family, x, family.box(x), GRID_SHAPE)


def box_nodes(family: Family, x: np.ndarray, box: Box, shape: tuple[int, int]) -> Nodes:
    """A regular grid of `shape` over `box`, including the edges."""
    (p_lo, p_hi), (q_lo, q_hi) = box
    num_p, num_q = shape[0], shape[1] if q_hi > q_lo else 1
    p, q = np.linspace(p_lo, p_hi, num_p), np.linspace(q_lo, q_hi, num_q)
    return _nodes(family, x, np.repeat(p, num_q), np.tile(q, num_p))


def _nodes(family: Family, x: np.ndarray, p: np.ndarray, q: np.ndarray) -> Nodes:
    g = family.basis(x, p[:, None], q[:, None])
    return Nodes(p=p, q=q, g=g, sum_g=g.sum(axis=1), sum_gg=np.einsum("ij,ij->i", g, g))


def box_around(
    nodes: Nodes, chosen: int | np.ndarray, box: Box, shape: tuple[int, int], whole: Box, *, margin: float
) -> Box:
    """The box around the `chosen` nodes of a grid over `box`, with a margin in cells, limited to the whole box."""
    sides = []
    for values, (lo, hi), num, (least, largest) in zip((nodes.p, nodes.q), box, shape, whole, strict=True):
        beyond, inside = margin * (hi - lo) / (num - 1), values[chosen]
        sides.append((max(float(inside.min()) - beyond, least), min(float(inside.max()) + beyond, largest)))
    return sides[0], sides[1]


def node_deviances(nodes: Nodes, y: np.ndarray, *, variance: float, priors: Sequence[Prior]) -> list[Deviance]:
    """The deviance of `nodes` given readings `y` of equal `variance`, under each prior; sums over the readings are
    computed once.
    """
    # einsum, because BLAS would wake all its threads for this.
    d_a = np.einsum("ij,j->i", nodes.g, y) / variance
    d_ra, d_aa = nodes.sum_g / variance, nodes.sum_gg / variance
    return [
        Deviance(
            d_0=float(y @ y / variance + prior.value**2 / prior.variance),
            d_r=float(y.sum() / variance + prior.value / prior.variance),
            d_rr=y.size / variance + 1 / prior.variance,
            d_a=d_a,
            d_ra=d_ra,
            d_aa=d_aa,
        )
        for prior in priors
    ]


def best_linear_part(deviance: Deviance) -> tuple[np.ndarray, np.ndarray]:
    """The (r, a) of least deviance at every node within the bounds r >= 0, a >= 0, r + a <= 1.

    The bounds form a triangle: if the free optimum lies outside, the best point is on one of its three edges.
    """
    d_r, d_rr, d_a, d_ra, d_aa = deviance.d_r, deviance.d_rr, deviance.d_a, deviance.d_ra, deviance.d_aa
    determinant = d_rr * d_aa - d_ra**2
    # If g hardly varies over the readings, only rounding tells r from a, and the edges decide too.
    regular = determinant > 1e-12 * d_rr * d_aa
    determinant = np.where(regular, determinant, 1.0)
    r = (d_r * d_aa - d_a * d_ra) / determinant
    a = (d_rr * d_a - d_r * d_ra) / determinant
    outside = np.flatnonzero(~regular | (r < 0) | (a < 0) | (r + a > 1))
    if outside.size:
        part = deviance.of(outside)
        on_ceiling = (d_r - part.d_a + part.d_aa - part.d_ra) / np.maximum(d_rr + part.d_aa - 2 * part.d_ra, TINY)
        on_floor = np.full(outside.size, d_r / d_rr)
        r_edges = np.stack([np.zeros(outside.size), on_floor, on_ceiling]).clip(0, 1)
        on_wall = (part.d_a / np.maximum(part.d_aa, TINY)).clip(0, 1)
        a_edges = np.stack([on_wall, np.zeros(outside.size), 1 - r_edges[2]])
        best = np.argmin(part.at(r_edges, a_edges), axis=0), np.arange(outside.size)
        r[outside], a[outside] = r_edges[best], a_edges[best]
    return r, a


def polish(
    family: SmoothFamily, x: np.ndarray, y: np.ndarray, p: float, q: float, *, variance: float, prior: Prior
) -> Solution:
    """Gauss-Newton over (p, q) from a node, with the best linear part at every step.

    The Jacobian is Kaufman's (1975): the derivatives of a g minus the part absorbed by the free linear columns.
    Levenberg's damping grows if a step does not help.
    """
    weight = np.append(np.full(y.size, variance**-0.5), prior.variance**-0.5)
    target = weight * np.append(y, prior.value)

    def project(p: float, q: float) -> tuple[float, float, np.ndarray, np.ndarray]:
        nodes = _nodes(family, x, np.array([p]), np.array([q]))
        r, a = best_linear_part(*node_deviances(nodes, y, variance=variance, priors=[prior]))
        columns = weight[:, None] * np.stack([np.ones(y.size + 1), np.append(nodes.g[0], 0)], axis=1)
        return float(r[0]), float(a[0]), columns, target - columns @ np.array([r[0], a[0]])

    (p_lo, p_hi), (q_lo, q_hi) = family.box(x)
    r, a, columns, error = project(p, q)
    damping = 1e-6
    for _ in range(MAX_POLISH_STEPS):
        slopes = np.zeros((y.size + 1, 2))
        slopes[:-1] = a * weight[:-1, None] * np.stack(family.gradient(x, p, q), axis=1)
        basis = np.linalg.qr(_free_columns(r, a, columns))[0]
        slopes -= basis @ (basis.T @ slopes)
        normal = slopes.T @ slopes
        damped = normal + np.diag(damping * normal.diagonal() + TINY)
        try:
            step = np.linalg.solve(damped, slopes.T @ error)
        except np.linalg.LinAlgError:  # p and q move the curve alike, and good steps have removed the damping
            damping = max(damping, 1e-3) * 10
            continue
        p_new, q_new = np.clip(p + step[0], p_lo, p_hi), np.clip(q + step[1], q_lo, q_hi)
        moved = max(abs(p_new - p), abs(q_new - q))
        trial = project(float(p_new), float(q_new))
        if trial[3] @ trial[3] < error @ error:
            p, q, (r, a, columns, error), damping = float(p_new), float(q_new), trial, damping / 10
        else:
            damping = max(damping, 1e-3) * 10
        if moved < 1e-9 or damping > 1e8:
            break

    g = family.basis(x, np.array(p), np.array(q))
    g_p, g_q = family.gradient(x, p, q)
    return Solution(
        r=r,
        a=a,
        p=p,
        q=q,
        residuals=y - r - a * g,
        jacobian=np.stack([np.ones(y.size), g, a * g_p, a * g_q], axis=1),
    )


def _free_columns(r: float, a: float, columns: np.ndarray) -> np.ndarray:
    """The directions of (r, a) that no bound blocks."""
    if r <= 0:
        return columns[:, 1:]
    if r + a >= 1 - 1e-12:
        return columns[:, :1] - columns[:, 1:]
    return columns
