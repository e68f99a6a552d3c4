"""The posterior of a curve, on a grid over its shape and its noise; the linear part is integrated in closed form.

Given a shape (p, q), a covariance of the readings and a prior of R_0, the readings are Gaussian in (r, a), so their
probability and the distribution of (r, a) are closed forms. Only these sums remain:

    shapes    a grid zoomed onto the plausible ones; prior of the family, flat for eq. 1 except in ln B
    noise     Cov = sampling_variance I + s^2 R(rho), R_ij = rho^|i - j|; s and rho on grids, equally likely
    R_0       the anchors (`ablations.fit.engine.anchor`)
    r, A      flat within the walls 0 <= r <= A <= 1

Draws are jittered within the grid cells and reweighted by the exact density, so the grid does not coarsen them.
"""

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np

from ablations.fit.engine.anchor import Anchor
from ablations.fit.engine.family import Box, Family
from ablations.fit.engine.noise import Noise
from ablations.fit.engine.projection import grid_sides
from ablations.fit.engine.shape_density import Cells, CurveModel, SumsOfCells, density_of_box
from ablations.fit.engine.sums import Sums
from ablations.fit.engine.truncated import LEAST_SHARE, log_between, truncated_normals
from ablations.fit.engine.zoom import FINE, Fineness, widened, zoomed_box

NUM_POSTERIOR_DRAWS = 2000
FLAT_ANCHOR = Anchor(value=0.5, own_variance=4.0)
"""An almost flat prior of R_0: it varies by 3 % between the bounds 0 and 1."""


class Draws(NamedTuple):
    """Equally likely curves r + a g(p, q), one per entry, each with its noise and anchor.

    `g_end` is g at the last reading; `A_mean` and `A_sd` are the mean and sd of A given everything else, before
    truncation.
    """

    r: np.ndarray
    a: np.ndarray
    p: np.ndarray
    q: np.ndarray
    run_sd: np.ndarray
    rho: np.ndarray
    anchor: np.ndarray
    g_end: np.ndarray
    A_mean: np.ndarray
    A_sd: np.ndarray

    def of(self, rows: np.ndarray) -> "Draws":
        """The draws in these rows, in this order."""
        return Draws(*(values[rows] for values in self))

    @property
    def run_variance(self) -> float:
        """Mean variance of the run noise."""
        return float(np.mean(self.run_sd**2))

    @property
    def run_autocorrelation(self) -> float:
        """Mean lag-1 autocorrelation of the run noise, weighted by its variance."""
        return float(np.mean(self.rho * self.run_sd**2)) / self.run_variance

    def level_at_end(self) -> np.ndarray:
        """Pass rate of every drawn curve at the last reading, where x = ln(C / C_max) is 0."""
        return self.r + self.a * self.g_end

    def ceiling_density(self, A: np.ndarray) -> np.ndarray:
        """Posterior density of the ceiling at each A, averaged over the draws' own (Gelfand and Smith 1990)."""
        log_inside = log_between(-self.A_mean / self.A_sd, (1 - self.A_mean) / self.A_sd, 1 / self.A_sd)
        # -(A - A_mean)^2 / 2 A_sd^2 in powers of A, about a typical A so that their sum keeps its digits.
        centre, precision = float(self.A_mean.clip(0, 1).mean()), self.A_sd**-2
        A, mean = np.atleast_1d(A) - centre, self.A_mean - centre
        factors = -0.5 * precision, precision * mean, -0.5 * precision * mean**2 - log_inside - np.log(self.A_sd)
        log_density = np.stack([A**2, A, np.ones(A.size)], axis=1) @ np.stack(factors)
        return np.mean(_exp(log_density), axis=1) / np.sqrt(2 * np.pi)


class Linear(NamedTuple):
    """The Gaussian of (r, A) for each entry, and the log probability of the readings including the bounds of A."""

    log_evidence: np.ndarray
    r_mean: np.ndarray
    A_mean: np.ndarray
    r_variance: np.ndarray
    A_variance: np.ndarray
    covariance: np.ndarray


def sample(
    family: Family,
    x: np.ndarray,
    y: np.ndarray,
    *,
    noise: Noise,
    anchors: Sequence[Anchor],
    variance: float,
    num_draws: int = NUM_POSTERIOR_DRAWS,
    fineness: Fineness = FINE,
) -> Draws:
    """Draw from the posterior; equal readings give equal draws. `variance`, roughly that of one reading, guides the
    zoom; `fineness` sets how finely shapes are summed.

    Shapes: x and y are (num_points,), with x = ln(C / C_max).
    """
    # The prior of r must be proper even without an anchor, or shapes that say nothing about r take all the probability.
    anchors = [anchor if anchor.is_informative else FLAT_ANCHOR for anchor in anchors]
    model = CurveModel(family=family, x=x, y=y, noise=noise, anchors=anchors)
    # Seed from the readings: the draws of two curves are subtracted as if independent.
    rng = np.random.default_rng(crc32(y.tobytes()))
    grid = _grid(model, variance, fineness)
    cells = Cells(*np.unravel_index(_systematic(grid.density.ravel(), num_draws, rng), grid.density.shape))
    # Jitter each shape within its cell.
    p, q = (
        np.clip(values[cells.node] + (hi - lo) / max(1, num - 1) * (rng.random(num_draws) - 0.5), *whole)
        for values, (lo, hi), num, whole in zip((grid.p, grid.q), grid.box, fineness.shape, family.box(x), strict=True)
    )
    linear = _linear_of_cells(model, grid.sums(p, q, cells), cells)
    r, A, r_inside = _draw_linear_part(linear, rng)
    # Weight each draw by the change of density within its cell.
    log_weight = linear.log_evidence + family.log_prior(p, q) - grid.log_density[cells]
    log_weight += np.log(np.maximum(r_inside, LEAST_SHARE))
    drawn = Draws(
        r=r,
        a=A - r,
        p=p,
        q=q,
        run_sd=np.sqrt(noise.run_variances)[cells.s],
        rho=noise.rhos[cells.rho],
        anchor=cells.anchor,
        g_end=family.basis(x[-1], p, q),
        A_mean=linear.A_mean,
        A_sd=np.sqrt(linear.A_variance),
    )
    return drawn.of(rng.permutation(_systematic(_exp(log_weight - log_weight.max()), num_draws, rng)))


class ShapeGrid(NamedTuple):
    """A regular grid over a box of shapes with almost no density at its edge."""

    box: Box
    p: np.ndarray
    q: np.ndarray
    """Shapes, one per node."""
    log_density: np.ndarray
    density: np.ndarray
    """The posterior density of each (rho, s, anchor, node), up to a constant."""
    sums: SumsOfCells


def _grid(model: CurveModel, variance: float, fineness: Fineness) -> ShapeGrid:
    family = model.family
    box = zoomed_box(family, model.x, model.y, anchors=model.anchors, variance=variance, fineness=fineness)
    while True:
        log_density, sums = density_of_box(model, box, fineness.shape)
        log_density -= log_density.max()
        density = _exp(log_density)
        wider = widened(density.sum(axis=(0, 1, 2)), box, family.box(model.x), fineness)
        if wider is None:
            p, q = grid_sides(box, fineness.shape)
            return ShapeGrid(box, np.repeat(p, q.size), np.tile(q, p.size), log_density, density, sums)
        box = wider


def _linear(sums: Sums, log_precision: np.ndarray, v: np.ndarray, m: np.ndarray, probability: np.ndarray) -> Linear:
    """The Gaussian of (r, A) for all sums, by the formulas of `log_density_of_shapes`.

    One noise, `log_precision` = -ln |V|, and one anchor, r ~ N(m, v), for each of the sums.
    """
    t, A_0 = sums.u_g / sums.g_g, sums.g_y / sums.g_g
    r_r, r_y = np.maximum(sums.u_u - t * sums.u_g, 1e-13 * sums.u_u), sums.u_y - t * sums.g_y
    p, e = r_r + 1 / v, r_y - m * r_r
    r = m + e / p
    A = A_0 - t * r
    determinant = sums.g_g * p
    misfit = sums.y_y - A_0 * sums.g_y - m * r_y - e * r
    A_variance = (sums.u_u + 1 / v) / determinant
    A_sd = np.sqrt(A_variance)
    log_inside = log_between(-A / A_sd, (1 - A) / A_sd, 1 / A_sd)
    return Linear(
        log_evidence=0.5 * (log_precision - np.log(v * determinant) - misfit) + log_inside + np.log(probability),
        r_mean=r,
        A_mean=A,
        r_variance=1 / p,
        A_variance=A_variance,
        covariance=-t / p,
    )


def _linear_of_cells(model: CurveModel, sums: Sums, cells: Cells) -> Linear:
    """The Gaussian of (r, A) for each draw, given its sums and the noise and anchor of its cell."""
    noise = model.noise
    run_variance = noise.run_variances[cells.s]
    variances = np.stack([anchor.variance(run_variance) for anchor in model.anchors])
    return _linear(
        sums,
        noise.log_precisions[cells.rho, cells.s],
        variances[cells.anchor, np.arange(cells.s.size)],
        np.array([anchor.value for anchor in model.anchors])[cells.anchor],
        np.array([anchor.probability for anchor in model.anchors])[cells.anchor],
    )


def _draw_linear_part(linear: Linear, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """r and A of each draw within 0 <= r <= A <= 1, and the probability of 0 <= r <= A given A."""
    A_sd = np.sqrt(linear.A_variance)
    lo, hi = -linear.A_mean / A_sd, (1 - linear.A_mean) / A_sd
    A = A_sd * truncated_normals(lo, hi, 1 / A_sd, rng)[0]
    slope = linear.covariance / linear.A_variance
    r_mean = linear.r_mean + slope * (A - linear.A_mean)
    r_sd = np.sqrt(np.maximum(linear.r_variance - slope * linear.covariance, 1e-300))
    distance, inside = truncated_normals(-r_mean / r_sd, (A - r_mean) / r_sd, A / r_sd, rng)
    return np.minimum(r_sd * distance, A), A, inside


def _exp(log_density: np.ndarray) -> np.ndarray:
    """e^`log_density`; NumPy takes twenty times as long where the result is too small for float64."""
    density = np.maximum(log_density, -700)
    return np.exp(density, out=density)


def _systematic(weights: np.ndarray, num: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of `num` draws in proportion to `weights`, by systematic resampling (Kitagawa 1996)."""
    total = np.cumsum(weights)
    return np.searchsorted(total, (np.arange(num) + rng.random()) / num * total[-1], side="right").clip(
        0, weights.size - 1
    )
