"""The noise of a curve's readings: sampling noise plus autocorrelated run noise.

Residuals of published runs have lag-1 autocorrelations of 0.3 to 0.56. An interval that takes such readings for
independent covers the truth in three cases of four where it promises nineteen of twenty. How strong the run noise is
and how long it lasts is not known either; both are averaged over, and that is what widens an interval.
"""

from dataclasses import dataclass

import numpy as np

RUN_AUTOCORRELATIONS = np.array([0.0, 0.4, 0.7, 0.85, 0.93])
"""Lag-1 autocorrelations of the run noise, equally likely beforehand."""
RUN_NOISE_FACTORS = np.geomspace(1 / 4, 4, 10)
"""Standard deviations of the run noise over that of the residuals, equally likely beforehand. A fit of twelve readings
absorbs all but a quarter of noise with rho = .93; under a quarter, run noise is lost in the rest."""


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
        log_likelihoods = self._log_likelihoods(residuals)
        largest = log_likelihoods.max(axis=0)
        return -2 * (largest + np.log(np.exp(log_likelihoods - largest).sum(axis=0)))

    def summary(self, residuals: np.ndarray) -> tuple[float, float]:
        """Standard deviation of one reading and the lag-1 autocorrelation that `residuals` speak for."""
        weights = self._log_likelihoods(residuals[None])[:, 0].reshape(len(self.axes), -1)
        weights = np.exp(weights - weights.max())
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
    num_points = jacobian.shape[0]
    lags = np.abs(np.subtract.outer(np.arange(num_points), np.arange(num_points)))
    run_variances = RUN_NOISE_FACTORS**2 * residual_variance
    # Any basis of the Jacobian's columns gives the same likelihood up to a constant; this one is never singular.
    fitted = np.linalg.qr(jacobian)[0]
    axes, precisions, log_scales = [], [], []
    for rho in RUN_AUTOCORRELATIONS:
        eigenvalues, vectors = np.linalg.eigh(rho**lags)
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
