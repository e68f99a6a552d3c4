"""Tests whether eq. 1 fits, in the direction in which curves with a different end would deviate from it.

An overall test of residuals says little here, because noise with unknown autocorrelation explains any smooth misfit. In
one direction chosen beforehand some power remains (Davidson and MacKinnon 1981; Fisher and McAleer 1981: the other law
is fitted to the fitted curve instead of the readings, so that it does not follow the noise). `benchmarks/law_doubt.py`
measures false and true alarms.
"""

import numpy as np
from scipy.special import ndtr

from ablations.fit.engine.family import WEIBULL
from ablations.fit.engine.noise import AR1
from ablations.fit.engine.projection import Prior, Solution, solve

LEAST_LENGTH = 1e-6
"""Minimum length, in standard deviations, of a testable direction outside the curve's own parameters."""


def lack_of_fit(x: np.ndarray, y: np.ndarray, best: Solution, noise: AR1) -> float:
    """p-value of eq. 1 for readings `y` at `x` = ln(C / C_max), against curves that bend like the Weibull family.

    z = d' M e / sqrt(d' M d) ~ N(0, 1), M = V^-1 - V^-1 J (J' V^-1 J)^-1 J' V^-1, two-sided. e are the residuals, J is
    the Jacobian of eq. 1, V the noise covariance, and d the residuals of the best Weibull curve through eq. 1's fitted
    curve.
    """
    fitted = y - best.residuals
    towards = solve(WEIBULL, x, fitted, variance=1.0, prior=Prior()).residuals
    whitened = noise.whiten(np.column_stack([best.jacobian, towards, best.residuals]))
    basis = np.linalg.qr(whitened[:, :-2])[0]
    d, e = (whitened[:, -2:] - basis @ (basis.T @ whitened[:, -2:])).T
    length = float(np.sqrt(d @ d))
    return 1.0 if length < LEAST_LENGTH else float(2 * ndtr(-abs(d @ e) / length))
