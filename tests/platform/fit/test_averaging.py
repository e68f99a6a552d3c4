"""Model error: which families the readings favour, and where it comes into a forecast."""

import numpy as np
import pytest
from curves import curve_of, eq1, readings

from ablations.fit.alternatives import aicc, akaike_weights
from ablations.fit.averaging import average, model_error_share
from ablations.fit.engine.family import FAMILIES, SIGMOID
from ablations.fit.engine.projection import Prior, solve
from ablations.fit.fitting import fit_curve

POWER_LAW = next(family for family in FAMILIES if family.name == "power law")


def noisy(law, *, sd=0.0045, compute=None):
    """Another law, measured."""
    compute = readings() if compute is None else compute
    return curve_of(law(compute), 0, compute, sd=sd)


@pytest.fixture(scope="module")
def fit():
    return fit_curve(noisy(eq1), fit_from=1500)


def plain_power_law_asymptote(C, y):
    """A of R = A - D / C^b with A <= 1, least squares: A and D are linear at each b."""
    best = np.inf, np.nan
    for b in np.geomspace(0.01, 5, 800):
        power = C**-b
        (A, minus_D), *_ = np.linalg.lstsq(np.stack([np.ones(C.size), power], axis=1), y)
        if A > 1:
            A, minus_D = 1.0, power @ (y - 1) / (power @ power)
        best = min(best, (float(np.sum((y - A - minus_D * power) ** 2)), float(A)))
    return best[1]


def test_a_plain_power_law_runs_to_1_on_a_sigmoid_that_ends_at_645():
    # ScaleRL A.4, batch 2048: A = 1.0 fitted on 1.5k to 50k, 0.74 on 5k to 50k; the sigmoid has 0.645 both times.
    every = np.arange(1350, 50_001, 1350.0)
    plain, sigmoid, shifted = [], [], []
    for fit_from in (1500, 5000):
        C = every[every > fit_from]
        y = eq1(C, A=0.645, B=1.70, C_mid=10_909, R_0=0.38)
        plain.append(plain_power_law_asymptote(C, y))
        for family, found in ((SIGMOID, sigmoid), (POWER_LAW, shifted)):
            best = solve(family, np.log(C / C[-1]), y, variance=1.0, prior=Prior())
            found.append(best.r + best.a)
    assert plain == pytest.approx([1.0, 0.74], abs=0.005)
    assert sigmoid == pytest.approx([0.645, 0.645], abs=1e-6)
    # The power law offered here starts at R_0 instead of minus infinity, and ends below the sigmoid.
    assert shifted == pytest.approx([0.635, 0.635], abs=0.002)


def test_the_criterion_is_what_it_is_by_hand():
    # 30 ln 0.0001 + 10 + 60 / 24
    assert aicc(1e-4, num_readings=30, autocorrelation=0.0, num_parameters=5) == pytest.approx(
        -276.310 + 12.5, abs=1e-3
    )
    # A lag-1 autocorrelation of 0.5 leaves 10 of 30 readings to the likelihood.
    assert aicc(1e-4, num_readings=30, autocorrelation=0.5, num_parameters=5) == pytest.approx(-92.103 + 12.5, abs=1e-3)


def test_the_criterion_exists_for_the_fewest_readings_that_are_fitted():
    assert np.isfinite(aicc(1e-4, num_readings=6, autocorrelation=0.9, num_parameters=5))


def test_weights_are_likelihoods_times_priors():
    # exp(-1) = 0.36788 for a difference of 2.
    assert akaike_weights(np.array([10.0, 12.0]), np.array([0.5, 0.5])) == pytest.approx([0.73106, 0.26894], abs=1e-5)
    assert akaike_weights(np.array([10.0, 10.0]), np.array([0.8, 0.2])) == pytest.approx([0.8, 0.2])


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("sigmoid", lambda C: eq1(C, A=0.9, C_mid=900.0, B=1.5)),
        ("exponential", lambda C: 0.2 + 0.6 * -np.expm1(-C / 1500)),
        ("logistic in compute", lambda C: 0.2 + 0.6 / (1 + np.exp(-(C - 4000) / 500))),
        ("log-linear", lambda C: 0.2 + 0.1 * np.log1p(C / 50)),
    ],
)
def test_readings_of_a_family_favour_it(name, law):
    curve = noisy(law, sd=0.001, compute=np.arange(0, 8001, 100.0))
    weights = fit_curve(curve).alternatives.weights
    assert max(weights, key=lambda family: weights[family]) == name
    assert sum(weights.values()) == pytest.approx(1)
    assert list(weights) == [family.name for family in FAMILIES]


def test_model_error_comes_in_over_a_doubling_of_compute():
    compute = np.array([0.0, 500.0, 1000.0, 1000 * np.sqrt(2), 2000.0, 1e9])
    assert model_error_share(compute, 1000.0) == pytest.approx([0, 0, 0, 0.5, 1, 1])


def test_within_the_readings_eq_1_speaks_alone(fit):
    compute = np.array([0.0, 2000.0, fit.window[1]])
    assert np.array_equal(average(fit).predict_draws(compute), fit.predict_draws(compute))


def test_beyond_twice_the_readings_draws_are_of_a_family_as_often_as_it_weighs(fit):
    found = average(fit)
    drawn, own = (each.predict_draws(3 * fit.window[1])[:, 0] for each in (found, fit))
    others = {successor.family.name: successor for successor in found.successors}
    assert np.mean(drawn == own) == pytest.approx(found.weights["sigmoid"], abs=1e-3)
    for name, successor in others.items():
        assert (successor.rows.stop - successor.rows.start) / drawn.size == pytest.approx(found.weights[name], abs=1e-3)
        assert np.array_equal(drawn[successor.rows], successor.curves(np.log([3.0]))[:, 0].clip(0, 1))
    assert len(others) >= 3


def test_the_band_does_not_narrow_where_families_take_over(fit):
    compute = fit.window[1] * np.array([1.0, 1.2, 1.4, 1.7, 2.0, 4.0])
    averaged, alone = (
        np.diff(np.quantile(of.predict_draws(compute), (0.025, 0.975), axis=0), axis=0)[0] for of in (average(fit), fit)
    )
    assert np.all(averaged > 0.97 * alone)
    assert averaged[-1] > alone[-1]


def test_the_band_holds_what_each_family_of_some_weight_says(fit):
    found = average(fit)
    lo, hi = np.quantile(found.predict_draws(4 * fit.window[1]), (0.025, 0.975))
    heard = [successor for successor in found.successors if found.weights[successor.family.name] > 0.05]
    assert heard
    for successor in heard:
        assert lo < np.median(successor.curves(np.log([4.0]))) < hi


def test_a_family_without_a_ceiling_still_predicts_pass_rates():
    curve = noisy(lambda C: 0.2 + 0.1 * np.log1p(C / 50), sd=0.001)
    found = average(fit_curve(curve))
    (log_linear,) = [successor for successor in found.successors if successor.family.name == "log-linear"]
    drawn = found.predict_draws(np.array([1e5, 1e12]))
    assert np.all((drawn >= 0) & (drawn <= 1))
    # 0.2 + 0.1 ln(1e12 / 50) = 2.57
    assert np.median(log_linear.curves(np.log([1e12 / found.fit.window[1]]))) == pytest.approx(2.57, rel=0.05)
    assert np.all(drawn[log_linear.rows, 1] == 1)


def test_the_average_of_a_fit_is_the_same_every_time(fit):
    again = fit_curve(fit.curve, fit_from=1500)
    compute = np.array([20_000.0])
    assert np.array_equal(average(fit).predict_draws(compute), average(again).predict_draws(compute))
