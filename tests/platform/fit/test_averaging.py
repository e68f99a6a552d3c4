"""Model error: which families the readings favour, and where it comes into a forecast."""

import numpy as np
import pytest
from curves import curve_of, eq1, readings

from ablations.fit.averaging import averaged_draws, model_error_share, successors
from ablations.fit.engine.family import FAMILIES
from ablations.fit.family_weights import aicc
from ablations.fit.fitting import fit_curve


def noisy(law, *, sd=0.0045, compute=None):
    """Another law, measured."""
    compute = readings() if compute is None else compute
    return curve_of(law(compute), 0, compute, sd=sd)


@pytest.fixture(scope="module")
def fit():
    return fit_curve(noisy(eq1), fit_from=1500)


def test_the_criterion_is_what_it_is_by_hand():
    # 30 ln 0.0001 + 10 + 60 / 24
    assert aicc(1e-4, num_readings=30, autocorrelation=0.0, num_parameters=5) == pytest.approx(
        -276.310 + 12.5, abs=1e-3
    )
    # A lag-1 autocorrelation of 0.5 leaves 10 of 30 readings to the likelihood.
    assert aicc(1e-4, num_readings=30, autocorrelation=0.5, num_parameters=5) == pytest.approx(-92.103 + 12.5, abs=1e-3)


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
    assert np.array_equal(averaged_draws(fit, compute), fit.predict_draws(compute))


def test_beyond_twice_the_readings_draws_are_of_a_family_as_often_as_it_weighs(fit):
    compute, weights = 3 * fit.window[1], fit.alternatives.weights
    drawn, own = averaged_draws(fit, compute)[:, 0], fit.predict_draws(compute)[:, 0]
    others = {successor.family: successor for successor in successors(fit)}
    assert np.mean(drawn == own) == pytest.approx(weights["sigmoid"], abs=1e-3)
    for name, successor in others.items():
        assert (successor.rows.stop - successor.rows.start) / drawn.size == pytest.approx(weights[name], abs=1e-3)
        assert np.array_equal(drawn[successor.rows], successor.curves(np.log([3.0]))[:, 0].clip(0, 1))
    assert len(others) >= 3


def test_the_band_does_not_narrow_where_families_take_over(fit):
    compute = fit.window[1] * np.array([1.0, 1.2, 1.4, 1.7, 2.0, 4.0])
    averaged, alone = (
        np.diff(np.quantile(drawn, (0.025, 0.975), axis=0), axis=0)[0]
        for drawn in (averaged_draws(fit, compute), fit.predict_draws(compute))
    )
    assert np.all(averaged > 0.97 * alone)
    assert averaged[-1] > alone[-1]
