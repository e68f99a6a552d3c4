"""The noise of a curve's readings: sampling noise plus autocorrelated run noise.

Residuals of published runs have lag-1 autocorrelations of 0.3 to 0.56. A 95 % interval that takes readings for
independent covers the truth in only three cases of four. The strength and duration of the run noise are unknown too;
averaging over both is what widens an interval.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, wraps
from typing import ParamSpec, TypeVar

import numpy as np
from scipy.linalg import eigh_tridiagonal, solve_triangular
from threadpoolctl import ThreadpoolController

from ablations.fit.engine.projection import Prior

RUN_AUTOCORRELATIONS = np.array([0.0, 0.4, 0.7, 0.85, 0.93])
"""Lag-1 autocorrelations of the run noise, with equal prior probability."""
RUN_NOISE_FACTORS = np.geomspace(1 / 4, 4, 10)
"""Standard deviations of the run noise relative to the residuals', with equal prior probability. A fit of twelve
readings absorbs all but a quarter of noise with rho = .93; below a quarter, run noise is lost in the rest."""
FEW_AUTOCORRELATIONS, FEW_FACTORS = np.array([0.0, 0.55, 0.85]), np.geomspace(1 / 4, 4, 5)
"""The same ranges more coarsely, for the first parts of finished runs."""

LEAST_SD = 1e-5
"""Minimum standard deviation, which keeps the deviance finite if a curve goes through its readings exactly."""
MOST_AUTOCORRELATION = 0.9
FEW_READINGS = 100
"""Number of readings up to which it takes less time to invert a matrix once than to solve with it many times."""

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True, eq=False)
class Noise:
    """All noises to average over: Cov = sampling_variance I + s^2 R(rho), R_ij = rho^|i - j|.

    One rho for each matrix in `axes` (eigenvectors of R, shape points x points), one s for each of `run_variances` and
    each row of the matrices in `precisions` (1 / eigenvalues of Cov), shape (num_rho, num_s, num_points).
    `log_precisions` are their -ln |Cov|, shape (num_rho, num_s).
    """

    sampling_variance: float
    rhos: np.ndarray
    run_variances: np.ndarray
    axes: np.ndarray
    precisions: np.ndarray
    log_precisions: np.ndarray


def noise_grid(num_points: int, *, sampling_variance: float, residual_variance: float, is_rough: bool = False) -> Noise:
    """The noises to average over for a curve with this residual variance; fewer with `is_rough`."""
    rhos, factors = (FEW_AUTOCORRELATIONS, FEW_FACTORS) if is_rough else (RUN_AUTOCORRELATIONS, RUN_NOISE_FACTORS)
    run_variances = factors**2 * residual_variance
    eigen = [ar1_eigenvectors(num_points, float(rho)) for rho in rhos]
    eigenvalues, axes = (np.stack(parts) for parts in zip(*eigen, strict=True))
    precisions = 1 / (sampling_variance + run_variances[:, None] * eigenvalues[:, None])
    return Noise(
        sampling_variance=sampling_variance,
        rhos=rhos,
        run_variances=run_variances,
        axes=axes,
        precisions=precisions,
        log_precisions=np.log(precisions).sum(axis=-1),
    )


class AR1:
    """One noise, Cov = sampling_variance I + run_variance R(rho)."""

    def __init__(self, num_points: int, *, sampling_variance: float, run_variance: float, rho: float) -> None:
        self.run_variance, self.rho = run_variance, rho
        self.variance = sampling_variance + run_variance
        lags = np.abs(np.subtract.outer(np.arange(num_points), np.arange(num_points)))
        rounded = round(rho, 3)
        covariance = run_variance * (rounded ** np.arange(num_points))[lags]
        covariance[np.diag_indices(num_points)] += sampling_variance
        self.most_variance = sampling_variance + run_variance * (1 + rounded) / (1 - rounded)
        """At least every eigenvalue of Cov, as the limit of a row's sum is (Gershgorin): e' Cov^-1 e >= e'e / this."""
        self._root = np.linalg.cholesky(covariance)

    def whiten(self, columns: np.ndarray) -> np.ndarray:
        """W `columns`, with W' W = Cov^-1, so that noise becomes independent entries of variance 1."""
        if len(self._root) <= FEW_READINGS:
            return (columns.T @ self._whitening.T).T  # the entries of a column stay side by side
        return np.asarray(solve_triangular(self._root, columns, lower=True, check_finite=False))

    @cached_property
    def _whitening(self) -> np.ndarray:
        return np.asarray(solve_triangular(self._root, np.eye(len(self._root)), lower=True))

    @property
    def autocorrelation(self) -> float:
        """Lag-1 autocorrelation of the total noise of a reading."""
        return self.run_variance * self.rho / self.variance

    def deviance(self, residuals: np.ndarray) -> float:
        """The quadratic form e' Cov^-1 e."""
        return float(np.sum(self.whiten(residuals) ** 2))

    def best_level(self, y: np.ndarray, prior: Prior) -> float:
        """The constant that best fits `y` and its prior, by generalised least squares."""
        one, y = self.whiten(np.stack([np.ones(y.size), y], axis=1)).T
        top = float(one @ y) + prior.value / prior.variance
        return top / (float(one @ one) + 1 / prior.variance)


def lag_1_autocorrelation(residuals: np.ndarray, num_parameters: int) -> float:
    """Lag-1 autocorrelation of the noise behind residuals, limited to between 0 and 0.9.

    Fitting num_parameters lowers the residuals' autocorrelation by about (num_parameters + 3 rho) / n (Kendall 1954).
    """
    square = float(residuals @ residuals)
    shown = float(residuals[1:] @ residuals[:-1]) / square if square > 0 else 0.0
    n = residuals.size
    return float(np.clip((shown + num_parameters / n) / max(1 - 3 / n, 0.5), 0, MOST_AUTOCORRELATION))


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` with one BLAS thread. More threads wait for each other if runs train on the same cores: a fit of
    20 ms took 300.
    """

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with blas_threads().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited


@cache
def blas_threads() -> ThreadpoolController:
    """The BLAS threads loaded by NumPy."""
    return ThreadpoolController()


@lru_cache(maxsize=64)
def ar1_eigenvectors(num_points: int, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of R, R_ij = rho^|i - j|, computed from its inverse.

    (1 - rho^2) R^-1 is tridiagonal, with 1, 1 + rho^2, ..., 1 + rho^2, 1 on the diagonal and -rho beside it.
    """
    diagonal = np.full(num_points, 1 + rho**2)
    diagonal[[0, -1]] = 1
    inverse_eigenvalues, vectors = eigh_tridiagonal(diagonal, np.full(num_points - 1, -rho))
    return (1 - rho**2) / inverse_eigenvalues, vectors
