"""The early cut-off: the compute from which a curve follows eq. 1.

The early regime of RL is almost linear and noisy, so the paper fits nothing below 1.5k GPU-hours, about one epoch
(ScaleRL §2.1, A.7, arXiv 2510.13786). Without such a number the readings decide: fit the last 60 % and go back block by
block while the fit predicts the previous block. This finds a step of 0.05 at the end of the early regime, and one of
0.03 in about half of the runs. A straight line that joins the law, never more than 0.016 off, goes undetected
(`benchmarks/cutoff.py`).
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.special import chdtrc, ndtri

from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.result import Fit

LATE_SHARE = 0.6
"""Fraction of the readings, the last ones, that is assumed to follow the law."""
BLOCK_READINGS = 4
LARGEST_MISS = 3.0
"""Largest deviation, in standard errors, at which a block still follows the law."""
LEAST_TAIL = 1e-300
LEAST_FOR_CUTOFF = 10
"""Smallest number of readings whose last 60 % are the six that a fit needs."""


def automatic_cutoff(curve: Curve, *, fit: Callable[[float], Fit]) -> Fit:
    """The fit from the smallest cut-off from which `curve` follows its law; `fit` fits it from a given cut-off.

        automatic_cutoff(curve, fit=lambda fit_from: fit_curve(curve, fit_from=fit_from))

    Costs one fit per block of four in the first 40 % of the readings. Raises AblationsError with the number of readings
    needed if there are too few.
    """
    fit = cache(fit)
    if (found := int(np.sum(curve.compute > 0))) < LEAST_FOR_CUTOFF:
        raise AblationsError(
            f"curve {curve.name!r}: {found} evaluations beyond step 0; an automatic cut-off needs at least "
            f"{LEAST_FOR_CUTOFF}, to fit the last 60 % of them"
        )
    fitted = (curve.compute > 0) & (curve.compute <= fit(0.0).window[1])
    compute, score = curve.compute[fitted], curve.score[fitted]
    if compute.size < LEAST_FOR_CUTOFF:  # too few left by a collapse
        return fit(0.0)
    first = num_early(compute.size)
    while first > 0:
        block = slice(max(first - BLOCK_READINGS, 0), first)
        if errors_off(fit(cutoff_before(compute, first)), compute[block], score[block]) > LARGEST_MISS:
            break
        first = block.start
    return fit(cutoff_before(compute, first))


def errors_off(fit: Fit, compute: np.ndarray, score: np.ndarray) -> float:
    """Distance of readings that `fit` has not seen from its prediction, as the z-score of a normal variable.

    d^2 = e' (Cov + sd^2 R)^-1 e, e = readings - mean of the draws, Cov = covariance of the draws, R_ij = rho^|i - j|;
    chi-squared with one degree of freedom per reading. The mean error alone would be a weaker test: the height of the
    curve outside the window is poorly known, but that it has no step there is known well.
    """
    draws = fit.predict_draws(compute)
    error = score - draws.mean(axis=0)
    lags = np.abs(np.subtract.outer(np.arange(score.size), np.arange(score.size)))
    covariance = np.atleast_2d(np.cov(draws, rowvar=False)) + fit.noise_sd**2 * fit.autocorrelation**lags
    return normal_equivalent(float(error @ np.linalg.solve(covariance, error)), score.size)


def normal_equivalent(chi_squared: float, degrees_of_freedom: int) -> float:
    """The z for which P(|normal| > z) is the probability of a larger chi-squared: 3 for 16.25 with 4 degrees."""
    tail = max(float(chdtrc(degrees_of_freedom, chi_squared)), LEAST_TAIL)
    return float(-ndtri(tail / 2))


def num_early(num_readings: int) -> int:
    """Number of readings before the last 60 %."""
    return num_readings - int(np.ceil(LATE_SHARE * num_readings))


def cutoff_before(compute: np.ndarray, index: int) -> float:
    """The cut-off that makes reading `index` the first one fitted."""
    return 0.0 if index == 0 else float(compute[index - 1])
