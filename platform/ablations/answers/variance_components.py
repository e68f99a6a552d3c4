"""The likelihood of two variances, one shared by numbers with the same start and one of the rest, and their priors.

    y_vi = mu_v + u_b(v,i) + e_vi,  u_b ~ N(0, omega^2), e_vi ~ N(0, tau^2 + s^2)

The restricted likelihood needs no mu_v: the numbers minus their group's mean are split into directions k that the
starts explain, with variances tau^2 + s^2 + lambda_k omega^2, and the rest, with tau^2 + s^2 (Searle, Casella and
McCulloch 1992, Variance components, chapter 6). If every group has every start, these are the sums of squares of a
two-way table, and lambda is the number of groups.
"""

from collections.abc import Sequence

import numpy as np

RunGroup = Sequence[tuple[str, float]]
"""The start and the number of each member."""
SMALLEST = 1e-9
"""Share of the largest lambda below which a lambda is rounding error."""


def log_half_cauchy(sd: np.ndarray, scale: float) -> np.ndarray:
    """Log density of ln sd for a half-Cauchy sd, up to a constant."""
    return np.log(sd) - np.log1p((sd / scale) ** 2)


def log_spike_and_slab(sd: np.ndarray, scale: float, at_zero: float) -> np.ndarray:
    """Log weight of each grid point, evenly spaced in ln sd except for its 0: `at_zero` at 0, the rest half-Cauchy."""
    above = sd > 0
    density = np.where(above, np.exp(log_half_cauchy(np.where(above, sd, 1.0), scale)), 0.0)
    return np.log(np.where(above, (1 - at_zero) * density / density.sum(), at_zero))


def log_normal(variance: np.ndarray, freedom: int, squares: float) -> np.ndarray:
    """Log density of `freedom` independent normal numbers with this variance and sum of squares, up to a constant."""
    return -0.5 * (freedom * np.log(variance) + squares / variance)


def restricted_log_likelihood(
    groups: Sequence[RunGroup], tau: np.ndarray, omega: np.ndarray, own_variance: float
) -> np.ndarray:
    """The restricted log likelihood at every tau and omega (broadcast), up to a constant; `own_variance` is s^2."""
    column: dict[str, int] = {}  # in order of appearance, so that names do not matter
    for start in (start for group in groups for start, _ in group):
        column.setdefault(start, len(column))
    # Products of each member's start indicators and number, minus the means.
    products = np.zeros((len(column) + 1, len(column) + 1))
    for group in groups:
        rows = np.zeros((len(group), len(column) + 1))
        for row, (start, value) in zip(rows, group, strict=True):
            row[column[start]], row[-1] = 1.0, value
        rows -= rows.mean(0)
        products += rows.T @ rows
    lambda_K, vector_BK = np.linalg.eigh(products[:-1, :-1])
    explained = lambda_K > SMALLEST * lambda_K[-1]
    lambda_K, vector_BK = lambda_K[explained], vector_BK[:, explained]
    squares_K = (vector_BK.T @ products[:-1, -1]) ** 2 / lambda_K
    freedom = sum(len(group) - 1 for group in groups) - lambda_K.size
    rest = max(float(products[-1, -1] - squares_K.sum()), 0.0)
    variance = tau**2 + own_variance
    found = log_normal(variance, freedom, rest) + 0 * omega
    for lambda_k, squares in zip(lambda_K, squares_K, strict=True):
        found = found + log_normal(variance + lambda_k * omega**2, 1, float(squares))
    return found
