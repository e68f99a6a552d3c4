"""The log density of every shape and noise on a grid: the evidence of `posterior._linear`, arranged for speed.

This is the innermost sum of a fit, over 168,100 combinations of noise, anchor and shape. It only decides which cells
are drawn, since draws are reweighted by the exact density; so R_0's walls are approximate here.
"""

from collections.abc import Sequence

import numpy as np

from ablations.fit.engine.anchor import Anchor
from ablations.fit.engine.sums import Sums
from ablations.fit.engine.truncated import log_between

OUT_OF_REACH = 7.0
"""Distance in standard deviations beyond which a bound cuts off less than 2e-12 of a density and is ignored."""


def log_density_of_shapes(
    sums: Sums, log_precision: np.ndarray, run_variances: np.ndarray, anchors: Sequence[Anchor]
) -> np.ndarray:
    """ln p(y) + ln P(0 <= r <= A) for r ~ N(m, v) of each anchor, each truncated as if the other were at its mean.

    The best A given r is A_0 - t r, which leaves the sums r_y and r_r of r. With p = r_r + 1 / v, e = r_y - m r_r:

        r = m + e / p        ln p(y) = -1/2 (ln |V| v g_g p + y_y - A_0 g_y - m r_y - e r) + ln P(0 <= A <= 1)

    `log_precision` = -ln |V| and `run_variances` have shapes (..., num_s, 1) and (num_s, 1); all anchors have one m.
    The result has shape (..., num_s, num_anchors, num_nodes).
    """
    (m,) = {anchor.value for anchor in anchors}
    t, A_0 = sums.u_g / sums.g_g, sums.g_y / sums.g_g
    r_r, r_y = sums.u_u - t * sums.u_g, sums.u_y - t * sums.g_y
    # If g hardly varies over the readings, only rounding is left of the precision.
    np.maximum(r_r, 1e-13 * sums.u_u, out=r_r)
    # Of r - m: a value that is known almost exactly would leave only the rounding of squares.
    e = r_y - m * r_r
    base = m * r_y + A_0 * sums.g_y - sums.y_y + log_precision
    found = np.empty((*e.shape[:-1], len(anchors), e.shape[-1]))
    for number, anchor in enumerate(anchors):
        v = anchor.variance(run_variances)
        p = r_r + 1 / v
        r = e / p
        r += m
        log_density = e * r
        log_density += base
        determinant = sums.g_g * p
        log_density -= np.log(determinant)
        log_density += 2 * np.log(anchor.probability) - np.log(v)
        log_density *= 0.5
        A = t * r
        np.subtract(A_0, A, out=A)
        determinant /= sums.u_u + 1 / v
        _add_log_inside(log_density, A, 1.0, determinant)
        _add_log_inside(log_density, r, np.clip(A, 0, 1, out=A), p)
        found[..., number, :] = log_density
    return found


def _add_log_inside(log_density: np.ndarray, mean: np.ndarray, top: np.ndarray | float, precision: np.ndarray) -> None:
    """Add ln P(0 <= z <= top), z ~ N(mean, 1 / precision), to `log_density`; overwrites `precision`."""
    per_sd = np.sqrt(precision, out=precision)
    to_top = top - mean
    to_wall = np.minimum(mean, to_top)
    to_wall *= per_sd
    near = np.flatnonzero(to_wall < OUT_OF_REACH)
    mean, to_top, per_sd = (values.ravel()[near] for values in (mean, to_top, per_sd))
    # The readings may say nothing about A, whose top is 1; r has a prior.
    width = None if isinstance(top, np.ndarray) else top * per_sd
    log_density.ravel()[near] += log_between(-mean * per_sd, to_top * per_sd, width)
