"""The test of eq. 1: against its formula with dense matrices, and on curves that follow eq. 1 and that do not."""

import numpy as np
import pytest
from curves import curve_of, eq1, readings
from scipy.stats import norm

from ablations.fit.engine.family import SIGMOID, WEIBULL
from ablations.fit.engine.lack_of_fit import lack_of_fit
from ablations.fit.engine.noise import AR1
from ablations.fit.engine.projection import Prior, solve
from ablations.fit.fitting import fit_curve

COMPUTE = readings(end=16_000)
X = np.log(COMPUTE[1:] / COMPUTE[-1])


def weibull(compute):
    return 0.3 - 0.4 * np.expm1(-((compute / 4000) ** 1.6))


def test_the_p_value_is_that_of_a_generalised_least_squares_coefficient():
    y = eq1(COMPUTE[1:]) + 0.004 * np.random.default_rng(1).standard_normal(X.size)
    best = solve(SIGMOID, X, y, variance=1.0, prior=Prior())
    noise = AR1(X.size, sampling_variance=4e-6, run_variance=1.2e-5, rho=0.6)
    V = 4e-6 * np.eye(X.size) + 1.2e-5 * 0.6 ** np.abs(np.subtract.outer(np.arange(X.size), np.arange(X.size)))
    direction = solve(WEIBULL, X, y - best.residuals, variance=1.0, prior=Prior()).residuals
    design = np.column_stack([best.jacobian, direction])
    inverse = np.linalg.inv(V)
    covariance = np.linalg.inv(design.T @ inverse @ design)
    coefficient = covariance @ design.T @ inverse @ best.residuals
    z = coefficient[-1] / np.sqrt(covariance[-1, -1])
    assert lack_of_fit(X, y, best, noise) == pytest.approx(2 * norm.sf(abs(z)), rel=1e-4)


def test_a_curve_of_the_law_is_seldom_doubted_and_one_that_ends_otherwise_is_with_little_noise():
    doubted = [fit_curve(curve_of(eq1(COMPUTE), seed, COMPUTE, sd=0.004)).doubts_eq1 for seed in range(20)]
    # At 5 % four or fewer of 20 in all but three cases in 1,000.
    assert sum(doubted) <= 4
    assert all(fit_curve(curve_of(weibull(COMPUTE), seed, COMPUTE, sd=0.0005)).doubts_eq1 for seed in range(2))


def test_a_curve_that_goes_through_every_reading_is_not_doubted():
    y = eq1(COMPUTE[1:])
    best = solve(SIGMOID, X, y, variance=1.0, prior=Prior())
    assert lack_of_fit(X, y, best, AR1(X.size, sampling_variance=0.0, run_variance=1e-5, rho=0.0)) > 0.99
