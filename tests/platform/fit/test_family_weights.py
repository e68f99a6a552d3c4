"""Weights of the families: which of them the readings favour."""

import numpy as np
import pytest
from curves import curve_of, eq1, readings

from ablations.fit.engine.family import FAMILIES
from ablations.fit.family_weights import aicc
from ablations.fit.fitting import fit_curve


def noisy(law, *, sd=0.0045, compute=None):
    """Another law, measured."""
    compute = readings() if compute is None else compute
    return curve_of(law(compute), 0, compute, sd=sd)


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
