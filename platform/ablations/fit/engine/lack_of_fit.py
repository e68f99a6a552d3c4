"""Does eq. 1 fit? A test of its residuals in the direction in which curves that end otherwise would leave it.

An overall test of residuals says little here: noise that is autocorrelated by an unknown amount explains any smooth
misfit. In one direction chosen beforehand it still has some power (Davidson and MacKinnon 1981; Fisher and McAleer
1981: the other law is fitted to the fitted curve and not to the readings, so that it does not follow the noise). How
often it is wrong and how often right is measured in `benchmarks/law_doubt.py`.
"""

import numpy as np
from scipy.special import ndtr

from ablations.fit.engine.family import WEIBULL
from ablations.fit.engine.noise import AR1
from ablations.fit.engine.projection import Prior, Solution, solve

LEAST_LENGTH = 1e-6
"""Of the direction beside the curve's own parameters, in standard deviations; below it there is nothing to test."""


def lack_of_fit(x: np.ndarray, y: np.ndarray, best: Solution, noise: AR1) -> float:
    """p-value of eq. 1 on readings `y` at `x` = ln(C / C_max), against curves that bend as the Weibull family does.

    z = d' M e / sqrt(d' M d) ~ N(0, 1), M = V^-1 - V^-1 J (J' V^-1 J)^-1 J' V^-1, both sides: e are the residuals,
    J the Jacobian of eq. 1, V the covariance of the noise, and d what the best Weibull curve through eq. 1's fitted
    curve misses of it.
    """
    fitted = y - best.residuals
    towards = solve(WEIBULL, x, fitted, variance=1.0, prior=Prior()).residuals
    whitened = noise.whitened(np.column_stack([best.jacobian, towards, best.residuals]))
    basis = np.linalg.qr(whitened[:, :-2])[0]
    d, e = (whitened[:, -2:] - basis @ (basis.T @ whitened[:, -2:])).T
    length = float(np.sqrt(d @ d))
    return 1.0 if length < LEAST_LENGTH else float(2 * ndtr(-abs(d @ e) / length))
