"""The posterior against an integral over every parameter on a dense grid, and its parts against SciPy."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares, minimize

from ablations.fit.engine.anchor import Anchor, anchor_deviance, anchors
from ablations.fit.engine.ceiling_profile import ceiling_profile
from ablations.fit.engine.family import FAMILIES, SIGMOID, WEIBULL
from ablations.fit.engine.noise import AR1, FEW_READINGS, noise_grid
from ablations.fit.engine.posterior import Draws, sample
from ablations.fit.engine.projection import Prior, solve
from ablations.fit.huber import HUBER_MADS, huberised

COMPUTE = np.linspace(0.1, 1, 9)
X = np.log(COMPUTE)
SAMPLING_VARIANCE, RESIDUAL_VARIANCE = 1e-4, 2e-4
START = 0.22
ANCHORS = [
    Anchor(value=START, own_variance=1e-4, run_share=1.0, probability=0.7),
    Anchor(value=START, own_variance=1e-4 + 0.08**2, run_share=1.0, probability=0.3),
]


def law(x, A, B, C_mid, R_0):
    return R_0 + (A - R_0) / (1 + (C_mid / np.exp(x)) ** B)


def readings(seed=1, A=0.7, B=1.6, C_mid=0.3, R_0=0.25):
    return law(X, A, B, C_mid, R_0) + 0.012 * np.random.default_rng(seed).standard_normal(X.size)


def covariance(num, run_variance, rho, sampling_variance=SAMPLING_VARIANCE):
    index = np.arange(num)
    return sampling_variance * np.eye(num) + run_variance * rho ** np.abs(index[:, None] - index)


def drawn(y, family=SIGMOID, num_draws=20_000) -> Draws:
    noise = noise_grid(y.size, sampling_variance=SAMPLING_VARIANCE, residual_variance=RESIDUAL_VARIANCE)
    return sample(family, X, y, noise=noise, anchors=ANCHORS, variance=5e-4, num_draws=num_draws)


def integrated(y):
    """Marginal moments and distribution of A, B, C_mid and R_0 by adding up the joint density over a grid of all of
    them and of all noises and anchors.
    """
    A, r = np.linspace(0.004, 0.999, 61), np.linspace(0.002, 0.55, 51)
    p, q = np.linspace(X.min() + np.log(0.1), np.log(30), 120), np.linspace(np.log(0.3), np.log(6), 34)
    noise = noise_grid(y.size, sampling_variance=SAMPLING_VARIANCE, residual_variance=RESIDUAL_VARIANCE)
    density = np.zeros((A.size, r.size, p.size, q.size))
    inside = r[None, :] <= A[:, None]
    g = 1 / (1 + np.exp(np.exp(q) * (p[:, None, None] - X[:, None]))).transpose(0, 2, 1)  # p, q, reading
    for run_variance in noise.run_variances:
        for rho in noise.rhos:
            cov = covariance(y.size, run_variance, rho)
            half = np.linalg.inv(np.linalg.cholesky(cov))
            log_det = np.linalg.slogdet(cov)[1]
            wy, wu, wg = half @ y, (1 - g) @ half.T, g @ half.T
            prior_r: Any = sum(
                anchor.probability
                * np.exp(-0.5 * (r - anchor.value) ** 2 / (anchor.own_variance + run_variance))
                / np.sqrt(anchor.own_variance + run_variance)
                for anchor in ANCHORS
            )
            # |wy - r wu - A wg|^2, spelled out.
            uu, gg, ug = (np.einsum("pqi,pqi->pq", a, b) for a, b in ((wu, wu), (wg, wg), (wu, wg)))
            uy, gy = wu @ wy, wg @ wy
            misfit = (
                wy @ wy
                - 2 * r[None, :, None, None] * uy
                - 2 * A[:, None, None, None] * gy
                + r[None, :, None, None] ** 2 * uu
                + A[:, None, None, None] ** 2 * gg
                + 2 * A[:, None, None, None] * r[None, :, None, None] * ug
            )
            density += np.exp(-0.5 * (misfit + log_det)) * prior_r[None, :, None, None]
    density *= np.exp(-0.5 * ((q - np.log(1.75)) / 0.35) ** 2) * inside[:, :, None, None]
    density /= density.sum()
    axes = {"A": A, "r": r, "p": p, "q": q}
    return {
        name: (values, density.sum(axis=tuple(k for k in range(4) if k != i)))
        for i, (name, values) in enumerate(axes.items())
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(4, marks=pytest.mark.studies)])
def test_the_posterior_is_the_integral_over_everything_else(seed):
    y = readings(seed)
    draws = drawn(y)
    of = {"A": draws.r + draws.a, "r": draws.r, "p": draws.p, "q": draws.q}
    for name, (values, weight) in integrated(y).items():
        mean = values @ weight
        sd = np.sqrt((values - mean) ** 2 @ weight)
        # 20,000 draws, some of them twice: the standard error of a mean is about sd / 100.
        assert of[name].mean() == pytest.approx(mean, abs=0.05 * sd), name
        assert of[name].std() == pytest.approx(sd, rel=0.06), name
        below = np.interp(np.quantile(of[name], [0.1, 0.5, 0.9]), values, np.cumsum(weight) - weight / 2)
        assert below == pytest.approx([0.1, 0.5, 0.9], abs=0.03), name


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_family_rises_from_0(family):
    for along in (0.25, 0.5, 0.8):
        p, q = (lo + along * (hi - lo) for lo, hi in family.box(X))
        ends = family.basis(np.array([-60.0, 0.0]), np.array(p), np.array(q))
        assert ends[0] == pytest.approx(0, abs=1e-6)
        assert 0 < ends[1] <= 1
        assert np.all(np.diff(family.basis(X, np.array(p), np.array(q))) >= 0)


@pytest.mark.parametrize("family", [SIGMOID, WEIBULL], ids=lambda family: family.name)
def test_derivatives_are_difference_quotients(family):
    for along in (0.25, 0.5, 0.8):
        p, q = (lo + along * (hi - lo) for lo, hi in family.box(X))
        dp, dq = family.gradient(X, p, q)
        step = 1e-6
        for slope, up, down in ((dp, (p + step, q), (p - step, q)), (dq, (p, q + step), (p, q - step))):
            measured = (family.basis(X, *np.array(up)) - family.basis(X, *np.array(down))) / (2 * step)
            assert slope == pytest.approx(measured, abs=1e-7)


def test_the_profile_is_the_least_over_everything_but_the_ceiling():
    y = readings(6)
    noise = AR1(y.size, sampling_variance=1e-4, run_variance=2e-4, rho=0.4)
    prior = Prior(value=START, variance=4e-4)
    inverse = np.linalg.inv(covariance(y.size, 2e-4, 0.4))

    def deviance(parameters, A):
        error = y - law(X, A, np.exp(parameters[1]), np.exp(parameters[2]), parameters[0])
        return error @ inverse @ error + (parameters[0] - START) ** 2 / 4e-4

    for A in (0.62, 1.0):
        starts = [(0.22, ln_B, ln_C) for ln_B in (-0.3, 0.5, 1.2) for ln_C in (-2, -1, 0)]
        box = [(0, A), (np.log(0.3), np.log(6)), (X.min() + np.log(0.1), np.log(30))]
        expected = min(
            minimize(deviance, start, (A,), bounds=box, method="L-BFGS-B", tol=1e-12).fun for start in starts
        )
        found = ceiling_profile(SIGMOID, X, y, np.array([A]), noise=noise, prior=prior)[0]
        assert found == pytest.approx(expected, abs=2e-2)


def test_the_step_0_reading_is_a_spike_and_a_slab():
    tight, slack = anchors(0.25, 0.25 * 0.75 / 1000, "anchored")
    assert tight.prior(1e-5).variance == pytest.approx(0.25 * 0.75 / 1000 + 1e-5)
    assert slack.prior(1e-5).variance == pytest.approx(0.25 * 0.75 / 1000 + 0.08**2 + 1e-5)
    assert (tight.probability, slack.probability) == (0.7, 0.3)
    assert anchors(None, 0.0, "anchored") == anchors(0.25, 1e-4, "free") == [Anchor()]
    # -2 ln(.7 N(.1; 0, v1) + .3 N(.1; 0, v2)) less the constant ln(2 pi).
    v1, v2 = tight.prior(0.0).variance, slack.prior(0.0).variance
    density = sum(w * np.exp(-0.5 * 0.01 / v) / np.sqrt(v) for w, v in ((0.7, v1), (0.3, v2)))
    assert anchor_deviance([tight, slack], 0.35, 0.0) == pytest.approx(-2 * np.log(density))


def test_hubers_readings_give_hubers_fit():
    compute = np.linspace(0.03, 1, 40)
    x = np.log(compute)
    y = law(x, 0.7, 1.6, 0.3, 0.25) + 0.005 * np.random.default_rng(7).standard_normal(x.size)
    y[[9, 25]] += 0.15, -0.12
    found = solve(SIGMOID, x, huberised(x, y), variance=1.0, prior=Prior())
    k = HUBER_MADS * np.median(np.abs(y - (found.r + found.a * SIGMOID.basis(x, np.array(found.p), np.array(found.q)))))

    def error(parameters):
        R_0, A, ln_C, ln_B = parameters
        return law(x, A, np.exp(ln_B), np.exp(ln_C), R_0) - y

    expected = least_squares(error, (0.25, 0.7, np.log(0.3), np.log(1.6)), loss="huber", f_scale=k, xtol=1e-14)
    assert (found.r, found.r + found.a, found.p, found.q) == pytest.approx(expected.x, abs=2e-4)
    plain = solve(SIGMOID, x, y, variance=1.0, prior=Prior())
    assert abs(plain.r + plain.a - 0.7) > 2 * abs(found.r + found.a - 0.7)


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
@pytest.mark.parametrize("sd", [1e-5, 0.004, 0.03])
def test_the_profile_passes_over_no_node_that_could_be_the_best(rho, sd, monkeypatch):
    x = np.log(np.linspace(0.02, 1, FEW_READINGS + 1))
    y = law(x, 0.7, 1.6, 0.3, 0.25) + sd * np.random.default_rng(2).standard_normal(x.size)
    noise = AR1(y.size, sampling_variance=sd**2, run_variance=sd**2, rho=rho)
    given = {"noise": noise, "prior": Prior(value=START, variance=4e-4)}
    A = np.array([0.5, 0.7, 1.0])
    found = ceiling_profile(SIGMOID, x, y, A, **given)
    monkeypatch.setattr("ablations.fit.engine.ceiling_profile.ROUNDING_SHARE", np.inf)  # passes over none
    assert found == pytest.approx(ceiling_profile(SIGMOID, x, y, A, **given), rel=1e-9, abs=1e-13 / sd**2)


@pytest.mark.parametrize("num", [40, FEW_READINGS + 1])
@pytest.mark.parametrize("rho", [0.0, 0.6, 0.93])
def test_no_noise_is_larger_than_its_limit(rho, num):
    noise = AR1(num, sampling_variance=1e-4, run_variance=2e-4, rho=rho)
    dense = covariance(num, 2e-4, rho)
    assert np.linalg.eigvalsh(dense).max() <= noise.most_variance * (1 + 1e-12)
    columns = np.random.default_rng(0).standard_normal((num, 3))
    white = noise.whiten(columns)
    assert white.T @ white == pytest.approx(columns.T @ np.linalg.inv(dense) @ columns)
