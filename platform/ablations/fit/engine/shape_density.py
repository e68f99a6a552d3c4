"""The posterior density of the shapes in a box, and the sums over readings that it follows from.

Each sum is over the readings of a curve, for each noise. Many readings leave a small box plausible, over which the sums
are polynomials in the shape (`chebyshev`): then the curves of a few shapes give those of all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ablations.fit.engine.anchor import Anchor
from ablations.fit.engine.chebyshev import Polynomials, last_coefficients
from ablations.fit.engine.family import Box, Family
from ablations.fit.engine.grid_density import log_density_of_shapes
from ablations.fit.engine.noise import Noise
from ablations.fit.engine.projection import curves_on_grid, grid_sides
from ablations.fit.engine.sums import Sums, sums_of_each, weighted_sums

VARYING = ("u_u", "u_g", "g_g", "u_y", "g_y")
"""The sums that depend on the shape."""
NODES_AT_ONCE = 2000
"""Shapes of all autocorrelations whose density is computed at once, so that arrays stay in the processor's cache."""
ENOUGH_FOR_POLYNOMIALS = 100
"""Number of readings from which polynomials save more than it takes to see whether they hold."""
NUM_COEFFICIENTS = (15, 21)
"""Numbers of coefficients along p and along q to try."""
LEAST_SAVED = 3
"""Smallest number of nodes for each Chebyshev point."""
MOST_LEFT_OUT, MOST_LEFT_OUT_OF_LOG = 1e-13, 1e-8
"""Largest last coefficients of a sum, as a share of it, and of a log density; those left out are far smaller."""
LEAST_SHARE_OF_SQUARES = 1e-3
"""Smallest ratio of a sum of squares to another one of the box: its digits are a share of the largest."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveModel:
    """Readings `y` at `x` = ln(C / C_max), with the models considered: a family of curves, noises, anchors."""

    family: Family
    x: np.ndarray
    y: np.ndarray
    noise: Noise
    anchors: Sequence[Anchor]


class Cells(NamedTuple):
    """Grid cells, one per entry, as indices of rho, s, anchor and node; rho ascends, then s."""

    rho: np.ndarray
    s: np.ndarray
    anchor: np.ndarray
    node: np.ndarray


SumsOfCells = Callable[[np.ndarray, np.ndarray, Cells], Sums]
"""The sums of curves with these p and q, each under the noise of its cell."""


def density_of_box(model: CurveModel, box: Box, shape: tuple[int, int]) -> tuple[np.ndarray, SumsOfCells]:
    """The log posterior density of each (rho, s, anchor, node), up to a constant, for a regular grid over the box; and
    how to sum over the readings of any curve within half a cell of it."""
    p, q = grid_sides(box, shape)
    found = None
    if model.x.size >= ENOUGH_FOR_POLYNOMIALS:
        around = _with_half_a_cell(model, box, shape)
        for num in NUM_COEFFICIENTS:
            if found is None and p.size * q.size >= LEAST_SAVED * num * (num if q.size > 1 else 1):
                found = _by_polynomials(model, Polynomials(box=around, num=num), p, q)
    if found is None:
        found = _of_curves(model, curves_on_grid(model.family, model.x, p, q)), _sums_of_curves(model)
    log_density, sums = found
    log_density += model.family.log_prior(np.repeat(p, q.size), np.tile(q, p.size))
    return log_density, sums


def _with_half_a_cell(model: CurveModel, box: Box, shape: tuple[int, int]) -> Box:
    sides = []
    for (lo, hi), num, (least, largest) in zip(box, shape, model.family.box(model.x), strict=True):
        beyond = (hi - lo) / (num - 1) / 2
        sides.append((max(lo - beyond, least), min(hi + beyond, largest)))
    return sides[0], sides[1]


def _of_curves(model: CurveModel, g: np.ndarray) -> np.ndarray:
    """The log density of curves, one a row, without the prior of their shapes."""
    noise = model.noise
    y, one = model.y @ noise.axes, noise.axes.sum(axis=1)
    found = np.empty((*noise.log_precisions.shape, len(model.anchors), len(g)))
    at_once = max(NODES_AT_ONCE // len(g), 1)
    for start in range(0, len(noise.rhos), at_once):
        rhos = slice(start, start + at_once)
        sums = weighted_sums(noise.axes[rhos].mT @ g.T, y[rhos], one[rhos], noise.precisions[rhos])
        found[rhos] = _log_density(model, sums, rhos)
    return found


def _log_density(model: CurveModel, sums: Sums, rhos: slice = slice(None)) -> np.ndarray:
    noise = model.noise
    log_precision, s = noise.log_precisions[rhos, :, None], noise.run_variances[:, None]
    return log_density_of_shapes(sums, log_precision, s, model.anchors)


def _sums_of_curves(model: CurveModel) -> SumsOfCells:
    noise = model.noise

    def sums(p: np.ndarray, q: np.ndarray, cells: Cells) -> Sums:
        g, parts = model.family.basis(model.x, p[:, None], q[:, None]), []
        ends = np.searchsorted(cells.rho, np.arange(len(noise.rhos) + 1))
        for rho, axes in enumerate(noise.axes):
            rows = slice(ends[rho], ends[rho + 1])
            precisions = noise.precisions[rho, cells.s[rows]]
            parts.append(sums_of_each(g[rows] @ axes, model.y @ axes, axes.sum(axis=0), precisions))
        return Sums(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in (*VARYING, "y_y")})

    return sums


def _by_polynomials(
    model: CurveModel, polynomials: Polynomials, p: np.ndarray, q: np.ndarray
) -> tuple[np.ndarray, SumsOfCells] | None:
    """The log density at every pair of these p and q, without the prior, and the sums; None if the sums are no
    polynomials with so few coefficients."""
    noise, points = model.noise, polynomials.points()
    g = model.family.basis(model.x, points[0][:, None], points[1][:, None])
    sums = weighted_sums(noise.axes.mT @ g.T, model.y @ noise.axes, noise.axes.sum(axis=1), noise.precisions)
    values = np.stack([getattr(sums, name) for name in VARYING])
    squares, size = values[[0, 2]], np.abs(values).max(axis=-1)
    coefficients = polynomials.coefficients(values)
    if (last_coefficients(coefficients) > MOST_LEFT_OUT * size).any() or (
        squares.min(-1) < LEAST_SHARE_OF_SQUARES * size[[0, 2]]
    ).any():
        return None
    of_log = polynomials.coefficients(_log_density(model, sums))
    if (last_coefficients(of_log) < MOST_LEFT_OUT_OF_LOG).all():
        log_density = polynomials.on_grid(of_log, p, q)
    else:  # a wall makes it bend
        on_grid = polynomials.on_grid(coefficients, p, q)
        log_density = _log_density(model, Sums(**dict(zip(VARYING, on_grid, strict=True)), y_y=sums.y_y))
    by_noise = np.moveaxis(coefficients.reshape(*coefficients.shape[:3], -1), 0, -1)

    def sums_of_cells(p: np.ndarray, q: np.ndarray, cells: Cells) -> Sums:
        terms, found = polynomials.terms(p, q), np.empty((p.size, len(values)))
        noises = cells.rho * by_noise.shape[1] + cells.s
        starts = np.flatnonzero(np.diff(noises, prepend=-1))
        for start, end in zip(starts, [*starts[1:], p.size], strict=True):
            found[start:end] = terms[start:end] @ by_noise[cells.rho[start], cells.s[start]]
        return Sums(**dict(zip(VARYING, found.T, strict=True)), y_y=sums.y_y[cells.rho, cells.s, 0])

    return log_density, sums_of_cells
