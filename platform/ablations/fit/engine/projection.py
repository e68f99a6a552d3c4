"""Variable projection: the best (r, a) in closed form at every grid shape (p, q), then a polish of the best node.

Golub and Pereyra (1973), "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
separate". No random starts are needed, because the grid covers the family's whole box.

The deviance to minimise is -2 ln likelihood up to a constant:

    sum_i (y_i - r - a g_i)^2 / variance + (r - prior.value)^2 / prior.variance
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from ablations.fit.engine.family import Box, Family, SmoothFamily

GRID_SHAPE = (81, 41)
"""Nodes in p and q."""
ROUGH_SHAPE = (31, 17)
"""Nodes in p and q where many grids are compared, or a coarse posterior is enough."""
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

    @cached_property
    def sum_g(self) -> np.ndarray:
        """Sum of g over the readings."""
        return self.g.sum(axis=1)

    @cached_property
    def sum_gg(self) -> np.ndarray:
        """Sum of g^2 over the readings."""
        return np.einsum("ij,ij->i", self.g, self.g)

    def sum_gy(self, y: np.ndarray) -> np.ndarray:
        """Sum of g y over the readings. The last one is kept, since a fit asks for it several times."""
        found = self._last_sum_gy.get(y.tobytes())
        if found is None:
            found = self.g @ y
            self._last_sum_gy.clear()
            self._last_sum_gy[y.tobytes()] = found
        return found

    @cached_property
    def _last_sum_gy(self) -> dict[bytes, np.ndarray]:
        return {}


class Deviance(NamedTuple):
    """The deviance of each node of some grids under each prior, as a quadratic in (r, a).

    Shapes (num_priors, 1) or (num_nodes,).
    """

    d_0: np.ndarray
    d_r: np.ndarray
    d_rr: np.ndarray
    d_a: np.ndarray
    d_ra: np.ndarray
    d_aa: np.ndarray

    def at(self, r: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Evaluate d_0 - 2 (r d_r + a d_a) + r^2 d_rr + 2 r a d_ra + a^2 d_aa."""
        return self.d_0 + r * (r * self.d_rr - 2 * self.d_r) + a * (2 * (r * self.d_ra - self.d_a) + a * self.d_aa)

    def of(self, prior: np.ndarray, node: np.ndarray) -> "Deviance":
        """The deviance of some nodes, each under one prior."""
        return Deviance(*(one[prior, 0] for one in self[:3]), *(one[node] for one in self[3:]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """The best curve r + a g(p, q), and its Jacobian over (r, a, p, q)."""

    r: float
    a: float
    p: float
    q: float
    residuals: np.ndarray
    jacobian: np.ndarray


def solve(
    family: SmoothFamily, x: np.ndarray, y: np.ndarray, *, variance: float, prior: Prior, is_rough: bool = False
) -> Solution:
    """The curve of smallest deviance in the family's box, for readings `y` of equal `variance` at `x` = ln C; with
    `is_rough`, among the nodes of a rough grid."""
    nodes = rough_nodes(family, x) if is_rough else grid_nodes(family, x)
    (((best,),), _, _) = best_nodes([nodes], y, variance=variance, priors=[prior])
    p, q = float(nodes.p[best]), float(nodes.q[best])
    return polish(family, x, y, p, q, variance=variance, prior=prior, max_steps=0 if is_rough else MAX_POLISH_STEPS)


def grid_nodes(family: Family, x: np.ndarray) -> Nodes:
    """The dense grid over the family's whole box."""
    return _cached_grid(family, x.tobytes())


@lru_cache(maxsize=32)
def _cached_grid(family: Family, x_bytes: bytes) -> Nodes:
    # Variants of a sweep are evaluated at the same compute values, and this basis costs more than the rest of a fit.
    x = np.frombuffer(x_bytes)
    return box_nodes(family, x, family.box(x), GRID_SHAPE)


def rough_nodes(family: Family, x: np.ndarray) -> Nodes:
    """A rough grid over the family's whole box."""
    return _cached_rough_nodes(family, x.tobytes())


@lru_cache(maxsize=32)
def _cached_rough_nodes(family: Family, x_bytes: bytes) -> Nodes:
    # Kept apart from the dense grids, because a curve may need a dozen of these.
    x = np.frombuffer(x_bytes)
    return box_nodes(family, x, family.box(x), ROUGH_SHAPE)


def box_nodes(family: Family, x: np.ndarray, box: Box, shape: tuple[int, int]) -> Nodes:
    """A regular grid of `shape` over `box`, including the edges; a single q if the family has none."""
    p, q = grid_sides(box, shape)
    return Nodes(p=np.repeat(p, q.size), q=np.tile(q, p.size), g=curves_on_grid(family, x, p, q))


def grid_sides(box: Box, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """p and q along the sides of a regular grid over `box`."""
    p, q = (
        lo + np.arange(num if hi > lo else 1) * ((hi - lo) / (num - 1))
        for (lo, hi), num in zip(box, shape, strict=True)
    )
    return p, q


def curves_on_grid(family: Family, x: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The basis at `x` for every pair of these p and q, one a row, p slowest."""
    # What depends on p alone is computed once for all q.
    return family.basis(x, p[:, None, None], q[:, None]).reshape(-1, x.size)


def box_around(
    nodes: Nodes, chosen: int | np.ndarray, box: Box, shape: tuple[int, int], whole: Box, *, margin: float
) -> Box:
    """The box around the `chosen` nodes of a grid over `box`, with a margin in cells, limited to the whole box."""
    sides = []
    for values, (lo, hi), num, (least, largest) in zip((nodes.p, nodes.q), box, shape, whole, strict=True):
        beyond, inside = margin * (hi - lo) / (num - 1), values[chosen]
        sides.append((max(float(inside.min()) - beyond, least), min(float(inside.max()) + beyond, largest)))
    return sides[0], sides[1]


def best_nodes(
    grids: Sequence[Nodes], y: np.ndarray, *, variance: float, priors: Sequence[Prior]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The node of least deviance in each grid under each prior, with its r and its deviance; each of shape
    (num_priors, num_grids)."""
    ends = np.cumsum([grid.p.size for grid in grids])
    starts = np.append(0, ends[:-1])
    r, found = least_deviances(grids, y, variance=variance, priors=priors)
    rows = np.stack(
        [start + found[:, start:end].argmin(axis=1) for start, end in zip(starts, ends, strict=True)], axis=1
    )
    return rows - starts, np.take_along_axis(r, rows, axis=1), np.take_along_axis(found, rows, axis=1)


def least_deviances(
    grids: Sequence[Nodes],
    y: np.ndarray,
    *,
    variance: float,
    priors: Sequence[Prior],
    penalty: np.ndarray | float = 0.0,
    within: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """The least deviance of every node of the grids under each prior, for readings `y` of equal `variance`, over (r, a)
    within the bounds r >= 0, a >= 0, r + a <= 1, and its r; both have shape (num_priors, num_nodes).

    A `penalty`, of the same shape, is added. Bounds only raise a deviance, so a node whose free optimum is outside and
    already exceeds one inside, under the same prior and in the same grid, by more than `within` gets infinity.
    """
    g_y, sum_g, sum_gg = (
        np.concatenate(sums) for sums in zip(*((one.sum_gy(y), one.sum_g, one.sum_gg) for one in grids), strict=True)
    )
    value, precision = np.array([(one.value, 1 / one.variance) for one in priors]).T[:, :, None]
    deviance = Deviance(
        d_0=y @ y / variance + precision * value**2,
        d_r=y.sum() / variance + precision * value,
        d_rr=y.size / variance + precision,
        d_a=g_y / variance,
        d_ra=sum_g / variance,
        d_aa=sum_gg / variance,
    )
    r, a, is_regular = _free_linear_part(deviance)
    found = deviance.at(r, a) + penalty
    is_inside = is_regular & ~_is_outside(r, a)
    least = np.where(is_inside, found, np.inf)
    sizes = [grid.p.size for grid in grids]
    limit = np.minimum.reduceat(least, np.cumsum([0, *sizes[:-1]]), axis=1) + within
    edges = np.nonzero(~is_inside & ~(is_regular & (found > np.repeat(limit, sizes, axis=1))))
    if edges[0].size:
        part = deviance.of(*edges)
        r[edges], a[edges] = _best_on_edges(part)
        least[edges] = part.at(r[edges], a[edges]) + np.broadcast_to(penalty, r.shape)[edges]
    return r, least


def _free_linear_part(deviance: Deviance) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The (r, a) of least deviance at every node without bounds, and whether it exists.

    If g hardly varies over the readings, only rounding tells r from a.
    """
    d_r, d_rr, d_a, d_ra, d_aa = deviance.d_r, deviance.d_rr, deviance.d_a, deviance.d_ra, deviance.d_aa
    square = d_rr * d_aa
    determinant = square - d_ra**2
    is_regular = determinant > 1e-12 * square
    determinant = np.where(is_regular, determinant, 1.0)
    return (d_r * d_aa - d_a * d_ra) / determinant, (d_rr * d_a - d_r * d_ra) / determinant, is_regular


def _is_outside(r: np.ndarray | float, a: np.ndarray | float) -> np.ndarray | bool:
    return (r < 0) | (a < 0) | (r + a > 1)


def _best_on_edges(deviance: Deviance) -> tuple[np.ndarray, np.ndarray]:
    """The (r, a) of least deviance on the edges r = 0, a = 0 and r + a = 1 of the bounds."""
    d_r, d_rr, d_a, d_ra, d_aa = deviance.d_r, deviance.d_rr, deviance.d_a, deviance.d_ra, deviance.d_aa
    zero = np.zeros(d_a.size)
    on_ceiling = (d_r - d_a + d_aa - d_ra) / np.maximum(d_rr + d_aa - 2 * d_ra, TINY)
    r_edges = np.stack([zero, d_r / d_rr, on_ceiling]).clip(0, 1)
    on_wall = (d_a / np.maximum(d_aa, TINY)).clip(0, 1)
    a_edges = np.stack([on_wall, zero, 1 - r_edges[2]])
    best = np.argmin(deviance.at(r_edges, a_edges), axis=0), np.arange(d_a.size)
    return r_edges[best], a_edges[best]


def polish(
    family: SmoothFamily,
    x: np.ndarray,
    y: np.ndarray,
    p: float,
    q: float,
    *,
    variance: float,
    prior: Prior,
    max_steps: int = MAX_POLISH_STEPS,
) -> Solution:
    """Gauss-Newton over (p, q) from a node, with the best linear part at every step.

    The Jacobian is Kaufman's (1975): the derivatives of a g minus the part absorbed by the free linear columns.
    Levenberg's damping grows if a step does not help.
    """
    num = y.size
    weight = np.append(np.full(num, variance**-0.5), prior.variance**-0.5)
    target = weight * np.append(y, prior.value)

    def project(p: float, q: float) -> tuple[float, float, np.ndarray, np.ndarray]:
        columns = np.zeros((num + 1, 2))
        columns[:, 0], columns[:num, 1] = weight, weight[:num] * family.basis(x, np.array(p), np.array(q))
        r, a = _best_of_one(columns[:, 0], columns[:, 1], target)
        return r, a, columns, target - columns @ (r, a)

    (p_lo, p_hi), (q_lo, q_hi) = family.box(x)
    r, a, columns, error = project(p, q)
    damping = 1e-6
    for _ in range(max_steps):
        slopes = np.zeros((num + 1, 3))
        for column, slope in enumerate(family.gradient(x, p, q)):
            slopes[:num, column] = a * weight[:num] * slope
        slopes[:, 2] = error
        # What R has below the free columns is the part of the slopes and of the error that these cannot absorb.
        free = _free_columns(r, a, columns)
        left = np.asarray(np.linalg.qr(np.hstack([free, slopes]), mode="r"))[free.shape[1] :, free.shape[1] :]
        normal = left[:, :2].T @ left[:, :2]
        damped = normal + np.diag(damping * normal.diagonal() + TINY)
        try:
            step = np.linalg.solve(damped, left[:, :2].T @ left[:, 2])
        except np.linalg.LinAlgError:  # p and q move the curve alike, and good steps have removed the damping
            damping = max(damping, 1e-3) * 10
            continue
        p_new, q_new = min(max(p + step[0], p_lo), p_hi), min(max(q + step[1], q_lo), q_hi)
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


def _best_of_one(one: np.ndarray, g: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The (r, a) within the bounds by which r `one` + a `g` comes closest to `y`."""
    d_rr, d_ra, d_aa, d_r, d_a = (
        float(left @ right) for left, right in ((one, one), (one, g), (g, g), (one, y), (g, y))
    )
    determinant = d_rr * d_aa - d_ra**2
    if determinant > 1e-12 * d_rr * d_aa:
        r, a = (d_r * d_aa - d_a * d_ra) / determinant, (d_rr * d_a - d_r * d_ra) / determinant
        if not _is_outside(r, a):
            return r, a
    (r,), (a,) = _best_on_edges(Deviance(*(np.array([sum]) for sum in (y @ y, d_r, d_rr, d_a, d_ra, d_aa))))
    return float(r), float(a)


def _free_columns(r: float, a: float, columns: np.ndarray) -> np.ndarray:
    """The directions of (r, a) that no bound blocks."""
    if r <= 0:
        return columns[:, 1:]
    if r + a >= 1 - 1e-12:
        return columns[:, :1] - columns[:, 1:]
    return columns
