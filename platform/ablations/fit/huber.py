"""Outliers among the readings of a fit, made harmless."""

import numpy as np

from ablations.fit.engine.family import SIGMOID
from ablations.fit.engine.projection import Prior, solve

HUBER_MADS = 1.345 * 1.4826
"""Limit of squared residuals, in median absolute deviations: 95 % efficiency under normal noise."""
MAX_HUBER_STEPS = 50


def huberised(x: np.ndarray, y: np.ndarray, *, tolerance: float = 1e-8) -> np.ndarray:
    """Readings whose least-squares fit is Huber's M-estimate for `y`: y* = R(x) + clip(y - R(x), +-k) / m.

    k is HUBER_MADS times the median absolute residual, m the fraction of residuals that are not clipped. The division
    gives y* the scatter that the curve's uncertainty calls for (Huber and Ronchetti 2009, §7.6: pseudo-values).
    The iteration ends once no reading moves by `tolerance`.
    """
    pseudo, fitted, k = y, y, 0.0
    for _ in range(MAX_HUBER_STEPS):
        fitted = pseudo - solve(SIGMOID, x, pseudo, variance=1.0, prior=Prior()).residuals
        k = HUBER_MADS * float(np.median(np.abs(y - fitted)))
        before, pseudo = pseudo, fitted + np.clip(y - fitted, -k, k)
        if np.abs(pseudo - before).max() < tolerance:
            break
    unclipped = max(float(np.mean(np.abs(y - fitted) <= k)), 0.5)
    return fitted + np.clip(y - fitted, -k, k) / unclipped
