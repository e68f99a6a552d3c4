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
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np

from ablations.fit.engine.anchor import Anchor
from ablations.fit.engine.family import Box, Family
from ablations.fit.engine.noise import Noise
from ablations.fit.engine.projection import Nodes, box_nodes
from ablations.fit.engine.sums import Sums, sums_of_each, weighted_sums
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
        z = (np.atleast_1d(A)[:, None] - self.A_mean) / self.A_sd
        log_inside = log_between(-self.A_mean / self.A_sd, (1 - self.A_mean) / self.A_sd)
        return np.mean(np.exp(-0.5 * z**2 - log_inside) / self.A_sd, axis=1) / np.sqrt(2 * np.pi)


@dataclass(frozen=True, kw_only=True, eq=False)
class CurveModel:
    """Readings `y` at `x` = ln(C / C_max), with the models considered: a family of curves, noises, anchors."""

    family: Family
    x: np.ndarray
    y: np.ndarray
    noise: Noise
    anchors: Sequence[Anchor]


class Cells(NamedTuple):
    """Grid cells, one per entry, as indices of rho, s, anchor and node."""

    rho: np.ndarray
    s: np.ndarray
    anchor: np.ndarray
    node: np.ndarray


class Linear(NamedTuple):
    """The Gaussian of (r, A) for each entry, and the log probability of the readings including the bounds of A."""

    log_evidence: np.ndarray
    log_walls_of_r: np.ndarray
    """Approximate ln P(0 <= r <= A), for the search; `_draw_linear_part` computes it exactly."""
    r_mean: np.ndarray
    A_mean: np.ndarray
    r_variance: np.ndarray
    A_variance: np.ndarray
    covariance: np.ndarray

    def of(self, *index: np.ndarray) -> "Linear":
        """The entries at this index, in this order."""
        return Linear(*(values[index] for values in self))


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
    nodes, box, log_density = _grid(model, variance, fineness)
    density = np.exp(log_density - log_density.max())
    cells = Cells(*np.unravel_index(_systematic(density.ravel(), num_draws, rng), density.shape))
    # Jitter each shape within its cell.
    p, q = (
        np.clip(values[cells.node] + (hi - lo) / max(1, num - 1) * (rng.random(num_draws) - 0.5), *whole)
        for values, (lo, hi), num, whole in zip((nodes.p, nodes.q), box, fineness.shape, family.box(x), strict=True)
    )
    g = family.basis(x, p[:, None], q[:, None])
    linear = _linear_of_cells(model, g, cells)
    r, A, r_inside = _draw_linear_part(linear, rng)
    # Weight each draw by the change of density within its cell.
    log_weight = linear.log_evidence + family.log_prior(p, q) - log_density[cells]
    log_weight += np.log(np.maximum(r_inside, LEAST_SHARE))
    drawn = Draws(
        r=r,
        a=A - r,
        p=p,
        q=q,
        run_sd=np.sqrt(noise.run_variances)[cells.s],
        rho=noise.rhos[cells.rho],
        anchor=cells.anchor,
        g_end=g[:, -1],
        A_mean=linear.A_mean,
        A_sd=np.sqrt(linear.A_variance),
    )
    return drawn.of(rng.permutation(_systematic(np.exp(log_weight - log_weight.max()), num_draws, rng)))


def _grid(model: CurveModel, variance: float, fineness: Fineness) -> tuple[Nodes, Box, np.ndarray]:
    """Nodes over a box of shapes with almost no density at its edge, the box, and the log posterior density of each
    (rho, s, anchor, node), up to a constant.
    """
    family, x, y = model.family, model.x, model.y
    box = zoomed_box(family, x, y, anchors=model.anchors, variance=variance, finer=fineness.shape)
    while True:
        nodes = box_nodes(family, x, box, fineness.shape)
        log_density = _log_density(model, nodes)
        wider = widened(nodes, log_density, box, family.box(x), fineness.edge_share)
        if wider is None:
            return nodes, box, log_density
        box = wider


def _log_density(model: CurveModel, nodes: Nodes) -> np.ndarray:
    parts = []
    for rho in range(len(model.noise.rhos)):
        noise, axes = model.noise, model.noise.axes[rho]
        sums = weighted_sums(nodes.g @ axes, model.y @ axes, axes.sum(axis=0), noise.precisions[rho])
        s, log_precision = noise.run_variances[:, None], noise.log_precisions[rho][:, None]
        found = [_linear(sums, log_precision, s, anchor) for anchor in model.anchors]
        parts.append([linear.log_evidence + linear.log_walls_of_r for linear in found])
    return np.moveaxis(np.array(parts), 2, 1) + model.family.log_prior(nodes.p, nodes.q)


def _linear(sums: Sums, log_precision: np.ndarray, run_variance: np.ndarray, anchor: Anchor) -> Linear:
    """(r, A) for all sums: precision M = X' V^-1 X + anchor, X = (1 - g, g), mean M^-1 X' V^-1 y, and the evidence.

    ln p(y) = -1/2 (ln |V| + ln |M| + ln v + y' V^-1 y + value^2 / v - mean' M mean) + ln P(0 <= A <= 1).
    The noise is given by `log_precision` = -ln |V| and `run_variance`, which broadcast against the sums.
    """
    v = anchor.variance(run_variance)
    m_rr, m_rA, m_AA = sums.u_u + 1 / v, sums.u_g, sums.g_g
    b_r, b_A = sums.u_y + anchor.value / v, sums.g_y
    # If g hardly varies over the readings, only rounding is left of the determinant.
    product = m_rr * m_AA
    determinant = np.maximum(product - m_rA**2, 1e-13 * product + 1e-300)
    # Divisions cost several times as much as products, and this is the innermost sum.
    inverse = 1 / determinant
    r, A = (m_AA * b_r - m_rA * b_A) * inverse, (m_rr * b_A - m_rA * b_r) * inverse
    r_variance, A_variance = m_AA * inverse, m_rr * inverse
    misfit = sums.y_y + anchor.value**2 / v - r * b_r - A * b_A
    log_evidence = 0.5 * (log_precision - np.log(determinant) - np.log(v) - misfit)
    r_sd, A_sd = np.sqrt(r_variance), np.sqrt(A_variance)
    return Linear(
        log_evidence=log_evidence + log_between(-A / A_sd, (1 - A) / A_sd) + np.log(anchor.probability),
        log_walls_of_r=log_between(-r / r_sd, (np.minimum(np.maximum(A, 0), 1) - r) / r_sd),
        r_mean=r,
        A_mean=A,
        r_variance=r_variance,
        A_variance=A_variance,
        covariance=-m_rA * inverse,
    )


def _linear_of_cells(model: CurveModel, g: np.ndarray, cells: Cells) -> Linear:
    """The Gaussian of (r, A) for each draw, given its curve `g` and the noise and anchor of its cell."""
    noise, rows, parts = model.noise, [], []
    for rho, axes in enumerate(noise.axes):
        for number, anchor in enumerate(model.anchors):
            place = np.flatnonzero((cells.rho == rho) & (cells.anchor == number))
            if not place.size:
                continue
            s = cells.s[place]
            sums = sums_of_each(g[place] @ axes, model.y @ axes, axes.sum(axis=0), noise.precisions[rho][s])
            rows.append(place)
            parts.append(_linear(sums, noise.log_precisions[rho][s], noise.run_variances[s], anchor))
    joined = Linear(*(np.concatenate(values) for values in zip(*parts, strict=True)))
    return joined.of(np.argsort(np.concatenate(rows)))


def _draw_linear_part(linear: Linear, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """r and A of each draw within 0 <= r <= A <= 1, and the probability of 0 <= r <= A given A."""
    A_sd = np.sqrt(linear.A_variance)
    A = linear.A_mean + A_sd * truncated_normals(-linear.A_mean / A_sd, (1 - linear.A_mean) / A_sd, rng)[0]
    slope = linear.covariance / linear.A_variance
    r_mean = linear.r_mean + slope * (A - linear.A_mean)
    r_sd = np.sqrt(np.maximum(linear.r_variance - slope * linear.covariance, 1e-300))
    z, inside = truncated_normals(-r_mean / r_sd, (A - r_mean) / r_sd, rng)
    return np.clip(r_mean + r_sd * z, 0, A), A, inside


def _systematic(weights: np.ndarray, num: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of `num` draws in proportion to `weights`, by systematic resampling (Kitagawa 1996)."""
    total = np.cumsum(weights)
    return np.searchsorted(total, (np.arange(num) + rng.random()) / num * total[-1], side="right").clip(
        0, weights.size - 1
    )
