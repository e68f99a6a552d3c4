"""Forecasts of the end of a run from its first part, against numbers worked out by hand and simulated runs."""

import dataclasses

import curves
import numpy as np
import pytest
from curves import readings

from ablations.findings.backtest import Check, backtest, check_curve, mean_noise_variance, score
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve


def noisy(seed, compute=None, **parameters):
    """A whole run with white run noise."""
    return curves.noisy(seed, readings(end=16_000) if compute is None else compute, **parameters)


def test_half_of_a_run_forecasts_its_end():
    tested = backtest([noisy(seed) for seed in range(8)], fit_from=1500, fractions=(0.5,))
    (result,) = tested.scores
    # At half the budget MAE of the curve is 0.005 (benchmarks/forecast.py); the readings' mean adds 0.003.
    assert result.num_runs == 8
    assert result.mean_absolute_error < 0.012
    assert result.coverage >= 7 / 8
    # R(15700) - R(7800) = 0.0221 is what is gained after half; who carries the readings forward misses it.
    assert result.carried_mean_absolute_error == pytest.approx(0.0221, abs=0.005)


def test_the_noise_of_a_mean_of_readings_is_what_it_is_by_hand():
    fit = fit_curve(noisy(2), fit_from=1500)
    # Sampling variance 1e-5; run variance 4e-5 with rho 0.5, so that lag 1 of the sum is 0.5 * 4 / 5.
    readings = dataclasses.replace(fit.readings, sampling_variance=1e-5)
    known = dataclasses.replace(fit, noise_sd=np.sqrt(5e-5), autocorrelation=0.4, readings=readings)
    assert mean_noise_variance(known, 1) == pytest.approx(5e-5)
    # 1e-5 / 3 + 4e-5 (3 + 4 * 0.5 + 2 * 0.25) / 9
    assert mean_noise_variance(known, 3) == pytest.approx(2.77778e-5, rel=1e-5)


def test_bias_mean_absolute_error_and_coverage_are_those_of_the_checks():
    def made(predicted, measured, lo, hi, carried):
        return Check(curve="c", fraction=0.3, predicted=predicted, measured=measured, lo=lo, hi=hi, carried=carried)

    checks = [
        made(0.62, 0.60, 0.58, 0.66, 0.55),
        made(0.59, 0.60, 0.57, 0.61, 0.56),
        made(0.65, 0.60, 0.61, 0.69, 0.60),
        Check(curve="short", fraction=0.3, reason="too short"),
    ]
    result = score(0.3, checks)
    assert result.num_runs == 3
    assert result.mean_error == pytest.approx(0.02)
    assert result.mean_absolute_error == pytest.approx(0.08 / 3)
    assert result.coverage == pytest.approx(2 / 3)
    assert result.carried_mean_absolute_error == pytest.approx(0.03)


def test_a_fraction_with_too_few_readings_says_how_many_are_needed():
    curve = noisy(3, np.arange(0, 8001, 800.0))
    told: list[tuple[int, int]] = []
    tested = backtest([curve], fractions=(0.3, 0.7, 0.9), done=lambda *counts: told.append(counts))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert [one.num_runs for one in tested.scores] == [0, 1, 0]
    assert tested.scores[0].mean_error is None
    reasons = [one.reason for one in tested.checks]
    assert "3 evaluations with compute in (0, 2400]; a fit needs at least 6" in reasons[0]
    assert reasons[1] == ""
    assert reasons[2] == "curve 'seed 3': 1 evaluation beyond 7,200; a check needs 3"


def test_nothing_is_forecast_from_before_a_collapse():
    curve = noisy(4)
    scores = np.where(
        curve.compute > 6000, curve.score - 0.3 * np.minimum(curve.compute - 6000, 3000) / 3000, curve.score
    )
    found = check_curve(Curve(name="fallen", compute=curve.compute, score=scores, samples=curve.samples), 0.7)
    assert found.predicted is None
    assert "the pass rate fell for good after compute" in found.reason
