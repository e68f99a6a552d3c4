"""The posterior of a curve: on a grid over its shape and its noise, with everything linear integrated in closed form.

Given a shape (p, q), a covariance of the readings and what is known of R_0, the readings are Gaussian in (r, a), so
their probability and the distribution of (r, a) are closed forms. What is left are sums:

    shapes    a grid zoomed onto those that the readings allow; prior of the family, flat for eq. 1 but in ln B
    noise     Cov = sampling_variance I + s^2 R(rho), R_ij = rho^|i - j|; s and rho on grids, equally likely
    R_0       the anchors, see `ablations.fit.engine.anchor`
    r, A      flat within the walls 0 <= r <= A <= 1

Draws are moved within the cells of the grid and weighed by the exact density, so that they are no coarser than it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from scipy.special import ndtr, ndtri

from ablations.fit.engine.anchor import Anchor
from ablations.fit.engine.family import Box, Family
from ablations.fit.engine.noise import Noise
from ablations.fit.engine.projection import GRID_SHAPE, Nodes, best_linear_part, box_nodes, grid_nodes, node_deviance
from ablations.fit.engine.sums import Sums, weighted_sums

NUM_DRAWS = 2000
FINE_SHAPE = (41, 41)
MAX_ZOOMS = 8
PLAUSIBLE = 26.0
"""Deviance over the least of the shapes kept while zooming: e^-13 of the best one's likelihood."""
EDGE_SHARE = 1e-3
"""Most of the probability that may lie at the edge of the zoomed grid."""
LEAST_SHARE = 1e-300
FLAT_ANCHOR = Anchor(value=0.5, own_variance=4.0)
"""Flat to 3 % between the walls."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws:
    """Equally likely curves r + a g(p, q), one an entry, with the noise and the anchor that each was drawn with.

    `g_end` is g at the last reading; `A_mean` and `A_sd` are those of A given everything else, before the walls.
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

    @property
    def run_variance(self) -> float:
        """Mean variance of the run noise."""
        return float(np.mean(self.run_sd**2))

    @property
    def run_autocorrelation(self) -> float:
        """Mean lag-1 autocorrelation of the run noise, strong noise counting more."""
        return float(np.mean(self.rho * self.run_sd**2)) / self.run_variance

    def level_at_end(self) -> np.ndarray:
        """Pass rate of every drawn curve at the last reading, where x = ln(C / C_max) is 0."""
        return self.r + self.a * self.g_end

    def ceiling_density(self, A: np.ndarray) -> np.ndarray:
        """Posterior density of the ceiling at each A, averaged over the draws' own (Gelfand and Smith 1990)."""
        z = (np.atleast_1d(A)[:, None] - self.A_mean) / self.A_sd
        log_inside = _log_between(-self.A_mean / self.A_sd, (1 - self.A_mean) / self.A_sd)
        return np.mean(np.exp(-0.5 * z**2 - log_inside) / self.A_sd, axis=1) / np.sqrt(2 * np.pi)


@dataclass(frozen=True, kw_only=True, eq=False)
class Linear:
    """The Gaussian of (r, A) for each entry, and ln of the probability of the readings, walls of A included."""

    log_evidence: np.ndarray
    log_walls_of_r: np.ndarray
    """About ln P(0 <= r <= A): where to look, `_draws` has it exactly."""
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
    num_draws: int = NUM_DRAWS,
) -> Draws:
    """Draws from the posterior; the same for the same readings. `variance`, a rough one of a reading, guides the zoom.

    Shapes: x and y of (num_points,), x = ln(C / C_max).
    """
    # Without an anchor too the prior of r must be proper, or shapes that say nothing of r have all the probability.
    anchors = [anchor if anchor.is_informative else FLAT_ANCHOR for anchor in anchors]
    # Its own numbers for each curve: the draws of two curves are subtracted as independent.
    rng = np.random.default_rng(crc32(y.tobytes()))
    box, whole = _zoomed_box(family, x, y, anchors=anchors, variance=variance), family.box(x)
    while True:
        nodes = box_nodes(family, x, box, FINE_SHAPE)
        log_density = _log_density(family, nodes, y, noise=noise, anchors=anchors)
        wider = _widened(nodes, log_density, box, whole)
        if wider is None:
            break
        box = wider
    density = np.exp(log_density - log_density.max())
    chosen = np.unravel_index(_systematic(density.ravel(), num_draws, rng), density.shape)
    return _draws(family, x, y, nodes, box, log_density, chosen, noise=noise, anchors=anchors, rng=rng)


def _log_density(family: Family, nodes: Nodes, y: np.ndarray, *, noise: Noise, anchors: Sequence[Anchor]) -> np.ndarray:
    """Log posterior density of each (rho, s, anchor, node), up to a constant."""
    prior = family.log_prior(nodes.p, nodes.q)
    parts = []
    for rho in range(len(noise.rhos)):
        sums = weighted_sums(
            nodes.g @ noise.axes[rho], y @ noise.axes[rho], noise.axes[rho].sum(axis=0), noise.precisions[rho]
        )
        found = [_linear(sums, noise, rho, anchor) for anchor in anchors]
        parts.append([linear.log_evidence + linear.log_walls_of_r for linear in found])
    return np.moveaxis(np.array(parts), 2, 1) + prior


def _linear(sums: Sums, noise: Noise, rho: int, anchor: Anchor) -> Linear:
    """(r, A) for every s and node: precision M = X' V^-1 X + anchor, X = (1 - g, g), mean M^-1 X' V^-1 y, evidence.

    ln p(y) = -1/2 (ln |V| + ln |M| + ln v + y' V^-1 y + value^2 / v - mean' M mean) + ln P(0 <= A <= 1).
    """
    v = anchor.variance(noise.run_variances)[:, None]
    m_rr, m_rA, m_AA = sums.u_u + 1 / v, sums.u_g, sums.g_g
    b_r, b_A = sums.u_y + anchor.value / v, sums.g_y
    # Where g hardly varies over the readings only rounding is left of the determinant.
    determinant = np.maximum(m_rr * m_AA - m_rA**2, 1e-13 * m_rr * m_AA + 1e-300)
    r, A = (m_AA * b_r - m_rA * b_A) / determinant, (m_rr * b_A - m_rA * b_r) / determinant
    r_variance, A_variance = m_AA / determinant, m_rr / determinant
    misfit = sums.y_y + anchor.value**2 / v - r * b_r - A * b_A
    log_evidence = 0.5 * (noise.log_precisions[rho][:, None] - np.log(determinant) - np.log(v) - misfit)
    r_sd, A_sd = np.sqrt(r_variance), np.sqrt(A_variance)
    return Linear(
        log_evidence=log_evidence + _log_between(-A / A_sd, (1 - A) / A_sd) + np.log(anchor.probability),
        log_walls_of_r=_log_between(-r / r_sd, (np.clip(A, 0, 1) - r) / r_sd),
        r_mean=r,
        A_mean=A,
        r_variance=r_variance,
        A_variance=A_variance,
        covariance=-m_rA / determinant,
    )


def _log_between(lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """ln of the probability that a standard normal lies between; in the upper tail 1 - ndtr loses every digit."""
    mirrored = lo > 0
    inside = np.where(mirrored, ndtr(-lo) - ndtr(-hi), ndtr(hi) - ndtr(lo))
    return np.log(np.maximum(inside, LEAST_SHARE))


def _draws(
    family: Family,
    x: np.ndarray,
    y: np.ndarray,
    nodes: Nodes,
    box: Box,
    log_density: np.ndarray,
    chosen: tuple[np.ndarray, ...],
    *,
    noise: Noise,
    anchors: Sequence[Anchor],
    rng: np.random.Generator,
) -> Draws:
    """Move each chosen shape within its cell, weigh it by the change of density, draw (r, A), and resample."""
    rho, s, anchor, node = chosen
    cells = [(hi - lo) / max(1, num - 1) for (lo, hi), num in zip(box, FINE_SHAPE, strict=True)]
    p, q = (
        np.clip(values[node] + cell * (rng.random(node.size) - 0.5), lo, hi)
        for values, cell, (lo, hi) in zip((nodes.p, nodes.q), cells, family.box(x), strict=True)
    )
    g = family.basis(x, p[:, None], q[:, None])
    names = ("log_evidence", "r_mean", "A_mean", "r_variance", "A_variance", "covariance")
    found = {name: np.empty(node.size) for name in names}
    for i in range(len(noise.rhos)):
        rows = np.flatnonzero(rho == i)
        if not rows.size:
            continue
        axes = noise.axes[i]
        sums = weighted_sums(g[rows] @ axes, y @ axes, axes.sum(axis=0), noise.precisions[i])
        for k, one_anchor in enumerate(anchors):
            under = np.flatnonzero(anchor[rows] == k)
            linear = _linear(sums, noise, i, one_anchor)
            for name in names:
                values = np.broadcast_to(getattr(linear, name), linear.log_evidence.shape)
                found[name][rows[under]] = values[s[rows[under]], under]
    weight = found["log_evidence"] + family.log_prior(p, q) - log_density[chosen]

    A_sd = np.sqrt(found["A_variance"])
    A = found["A_mean"] + A_sd * _truncated(-found["A_mean"] / A_sd, (1 - found["A_mean"]) / A_sd, rng)[0]
    slope = found["covariance"] / found["A_variance"]
    r_mean = found["r_mean"] + slope * (A - found["A_mean"])
    r_sd = np.sqrt(np.maximum(found["r_variance"] - slope * found["covariance"], 1e-300))
    z, inside = _truncated(-r_mean / r_sd, (A - r_mean) / r_sd, rng)
    r = np.clip(r_mean + r_sd * z, 0, A)
    weight += np.log(np.maximum(inside, LEAST_SHARE))

    kept = rng.permutation(_systematic(np.exp(weight - weight.max()), node.size, rng))
    run_sd = np.sqrt(noise.run_variances)[s]
    columns = {
        "r": r,
        "a": A - r,
        "p": p,
        "q": q,
        "run_sd": run_sd,
        "rho": noise.rhos[rho],
        "anchor": anchor,
        "g_end": g[:, -1],
        "A_mean": found["A_mean"],
        "A_sd": A_sd,
    }
    return Draws(**{name: column[kept] for name, column in columns.items()})


def _truncated(lo: np.ndarray, hi: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Standard normals between `lo` and `hi`, one an entry, and the probability of that range; the nearer end where
    it is too far away for the arithmetic.
    """
    below, above = ndtr(lo), ndtr(hi)
    # In the upper tail 1 - ndtr loses every digit: mirror it.
    mirrored = lo > 0
    below, above = np.where(mirrored, ndtr(-hi), below), np.where(mirrored, ndtr(-lo), above)
    inside = above - below
    with np.errstate(divide="ignore"):
        z = ndtri(below + inside * rng.random(lo.size))
    z = np.where(mirrored, -z, z)
    return np.clip(z, lo, hi), inside


def _systematic(weights: np.ndarray, num: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of `num` draws in proportion to `weights`, evenly spread (Kitagawa 1996)."""
    total = np.cumsum(weights)
    return np.searchsorted(total, (np.arange(num) + rng.random()) / num * total[-1], side="right").clip(
        0, weights.size - 1
    )


def _zoomed_box(family: Family, x: np.ndarray, y: np.ndarray, *, anchors: Sequence[Anchor], variance: float) -> Box:
    """The box around all shapes that independent readings of `variance` do not speak against."""

    def plausible(nodes: Nodes) -> np.ndarray:
        least = np.full(nodes.p.size, np.inf)
        for anchor in anchors:
            deviance = node_deviance(nodes, y, variance=variance, prior=anchor.prior(variance))
            r, a = best_linear_part(deviance)
            least = np.minimum(least, deviance.at(r, a) - 2 * np.log(anchor.probability))
        least -= 2 * family.log_prior(nodes.p, nodes.q)
        return np.flatnonzero(least <= least.min() + PLAUSIBLE)

    whole = box = family.box(x)
    nodes = grid_nodes(family, x)
    shape = GRID_SHAPE
    for _ in range(MAX_ZOOMS):
        zoomed = _box_around(nodes, plausible(nodes), box, whole, shape)
        if all(
            new[1] - new[0] > 0.6 * (old[1] - old[0]) for new, old in zip(zoomed, box, strict=True) if old[1] > old[0]
        ):
            return zoomed
        box, shape = zoomed, FINE_SHAPE
        nodes = box_nodes(family, x, box, shape)
    return box


def _box_around(nodes: Nodes, inside: np.ndarray, box: Box, whole: Box, shape: tuple[int, int]) -> Box:
    """The box that holds the nodes inside and a cell more on every side, within the whole box."""
    sides = []
    for values, (lo, hi), (least, largest), num in zip((nodes.p, nodes.q), box, whole, shape, strict=True):
        margin = (hi - lo) / (num - 1)
        sides.append((max(values[inside].min() - margin, least), min(values[inside].max() + margin, largest)))
    return sides[0], sides[1]


def _widened(nodes: Nodes, log_density: np.ndarray, box: Box, whole: Box) -> Box | None:
    """The box made wider where probability lies at its edge, though the family goes on there; None if nowhere."""
    mass = np.exp(log_density - log_density.max()).sum(axis=(0, 1, 2))
    mass /= mass.sum()
    sides, is_wider = [], False
    for values, (lo, hi), (least, largest) in zip((nodes.p, nodes.q), box, whole, strict=True):
        new_lo, new_hi = lo, hi
        if lo > least and mass[values == lo].sum() > EDGE_SHARE:
            new_lo, is_wider = max(least, lo - 0.5 * (hi - lo)), True
        if hi < largest and mass[values == hi].sum() > EDGE_SHARE:
            new_hi, is_wider = min(largest, hi + 0.5 * (hi - lo)), True
        sides.append((new_lo, new_hi))
    return (sides[0], sides[1]) if is_wider else None
