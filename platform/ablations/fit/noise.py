"""The noise of a curve's readings: sampling noise plus autocorrelated run noise.

Residuals of published runs have lag-1 autocorrelations of 0.3 to 0.56. An interval that takes such readings for
independent covers the truth in three cases of four where it promises nineteen of twenty. How strong the run noise is
and how long it lasts is not known either; both are averaged over, and that is what widens an interval.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import eigh_tridiagonal

RUN_AUTOCORRELATIONS = np.array([0.0, 0.4, 0.7, 0.85, 0.93])
"""Lag-1 autocorrelations of the run noise, equally likely beforehand."""
RUN_NOISE_FACTORS = np.geomspace(1 / 4, 4, 10)
"""Standard deviations of the run noise over that of the residuals, equally likely beforehand. A fit of twelve readings
absorbs all but a quarter of noise with rho = .93; under a quarter, run noise is lost in the rest."""

ONE_THREAD_PRODUCT = 200_000
"""Matrix products of up to about this many multiplications are done by one thread. Larger ones wake BLAS's threads,
which wait for each other while runs train on the same cores: a fit of 20 ms took 300."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseModel:
    """Every noise that is weighed, ready to judge residuals.

    Cov = sampling_variance I + s^2 R(rho) with R_ij = rho^|i - j|; one rho for each matrix of `axes` (the eigenvectors
    of R), one s for each row of the matrices in `precisions` (1 / eigenvalues of Cov).
    """

    sampling_variance: float
    run_variances: np.ndarray
    axes: list[np.ndarray]
    precisions: list[np.ndarray]
    log_scales: list[np.ndarray]

    def deviance(self, residuals: np.ndarray) -> np.ndarray:
        """-2 ln of the likelihood of each row of `residuals`, averaged over the noise, up to a constant."""
        num_rows = max(1, ONE_THREAD_PRODUCT // residuals.shape[1] ** 2)
        blocks = [residuals[start : start + num_rows] for start in range(0, len(residuals), num_rows)]
        return -2 * np.concatenate([_log_mean_exp(self._log_likelihoods(block)) for block in blocks])

    def summary(self, residuals: np.ndarray) -> tuple[float, float]:
        """Standard deviation of one reading and the lag-1 autocorrelation that `residuals` speak for."""
        log_likelihoods = self._log_likelihoods(residuals[None])[:, 0]
        weights = np.exp(log_likelihoods - log_likelihoods.max()).reshape(len(self.axes), -1)
        run_variance_by_rho = weights @ self.run_variances / weights.sum()
        variance = self.sampling_variance + run_variance_by_rho.sum()
        return float(np.sqrt(variance)), float(run_variance_by_rho @ RUN_AUTOCORRELATIONS / variance)

    def long_run_variance(self, residuals: np.ndarray) -> float:
        """sd^2 (1 + rho) / (1 - rho): the variance of independent readings that would say as much as these."""
        sd, rho = self.summary(residuals)
        return sd**2 * (1 + rho) / (1 - rho)

    def _log_likelihoods(self, residuals: np.ndarray) -> np.ndarray:
        parts = [
            log_scale[:, None] - 0.5 * precision @ ((residuals @ axes) ** 2).T
            for axes, precision, log_scale in zip(self.axes, self.precisions, self.log_scales, strict=True)
        ]
        return np.concatenate(parts)


def noise_model(jacobian: np.ndarray, *, sampling_variance: float, residual_variance: float) -> NoiseModel:
    """The noises to weigh for a fit with this Jacobian over its parameters.

    The likelihood is the restricted one of Patterson and Thompson (1971),

        ln L = -1/2 (ln |V| + ln |J' V^-1 J| + e' V^-1 e),

    which takes away the downward bias that fitting gives to the residuals' variance and autocorrelation.
    """
    run_variances = RUN_NOISE_FACTORS**2 * residual_variance
    # Any basis of the Jacobian's columns gives the same likelihood up to a constant; this one is never singular.
    fitted = np.linalg.qr(jacobian)[0]
    axes, precisions, log_scales = [], [], []
    for rho in RUN_AUTOCORRELATIONS:
        eigenvalues, vectors = ar1_eigenvectors(jacobian.shape[0], float(rho))
        precision = 1 / (sampling_variance + np.outer(run_variances, eigenvalues))
        along = vectors.T @ fitted
        information = np.einsum("ni,sn,nj->sij", along, precision, along)
        axes.append(vectors)
        precisions.append(precision)
        log_scales.append(0.5 * (np.log(precision).sum(axis=1) - np.linalg.slogdet(information)[1]))
    return NoiseModel(
        sampling_variance=sampling_variance,
        run_variances=run_variances,
        axes=axes,
        precisions=precisions,
        log_scales=log_scales,
    )


@lru_cache(maxsize=64)
def ar1_eigenvectors(num_points: int, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of R, R_ij = rho^|i - j|, from its inverse.

    (1 - rho^2) R^-1 is tridiagonal: 1, 1 + rho^2, ..., 1 + rho^2, 1 on the diagonal, -rho beside it.
    """
    diagonal = np.full(num_points, 1 + rho**2)
    diagonal[[0, -1]] = 1
    inverse_eigenvalues, vectors = eigh_tridiagonal(diagonal, np.full(num_points - 1, -rho))
    return (1 - rho**2) / inverse_eigenvalues, vectors


def _log_mean_exp(values: np.ndarray) -> np.ndarray:
    largest = values.max(axis=0)
    return largest + np.log(np.exp(values - largest).mean(axis=0))
