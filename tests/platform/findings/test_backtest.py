"""Forecasts of the end of a run from its first part, against numbers worked out by hand and simulated runs."""

import curves
import numpy as np
import pytest
from curves import readings

from ablations.findings.backtest import Check, backtest, mean_interval_score, score
from ablations.fit.curve import Curve
from ablations.fit.options import FitSettings


def noisy(seed, compute=None, **parameters):
    """A whole run with white run noise."""
    return curves.noisy(seed, readings(end=16_000) if compute is None else compute, **parameters)


def test_half_of_a_run_forecasts_its_end():
    tested = backtest({"v": [noisy(seed) for seed in range(8)]}, FitSettings(fit_from=1500), fractions=(0.5,))
    (result,) = tested.scores
    assert result.num_runs == 8
    assert result.mean_absolute_error < 0.012
    assert result.coverage >= 7 / 8
    # R(15700) - R(7800) = 0.0221 is what is gained after half. Finished runs teach it to whoever carries readings on.
    alone = backtest({"v": [noisy(0)]}, FitSettings(fit_from=1500), fractions=(0.5,)).checks[0]
    assert alone.carried - alone.measured == pytest.approx(-0.0221, abs=0.008)
    assert result.carried_mean_absolute_error < 0.012


def falling(seed, variant):
    """A run that climbs to .5 by its half and loses a tenth from there, as half of our own long runs did."""
    rng = np.random.default_rng([seed, variant])
    compute = readings(end=16_000)
    score = 0.3 + 0.2 * (1 - np.exp(-compute / 1500))
    score -= (0.08 + 0.02 * variant) * np.clip(compute / 8000 - 1, 0, None) + rng.normal(0, 0.006, compute.size)
    return Curve(name=f"{variant}-s{seed}", compute=compute, score=score)


def test_runs_that_lose_what_they_had_teach_the_forecasts_of_the_others():
    tested = backtest({f"{one}": [falling(seed, one) for seed in range(3)] for one in range(3)}, FitSettings())
    half = tested.scores[1]
    assert half.num_runs == 9
    assert half.coverage >= 8 / 9
    assert half.mean_absolute_error < 0.03
    # A run on its own ends a tenth lower than it stood, which nothing before its half says.
    alone = backtest({"0": [falling(0, 0)]}, FitSettings(), fractions=(0.5,)).checks[0]
    assert alone.error > 0.07


def test_where_nothing_rises_any_more_the_last_readings_are_carried_on():
    def level(seed, variant):
        rng = np.random.default_rng([seed, variant])
        compute = np.arange(0, 8001, 100.0)
        score = 0.2 + 0.4 * (1 - np.exp(-compute / 4000)) ** 3 * (compute < 2000) + 0.0
        score = np.minimum(0.2 + 0.4 * compute / 2400, 0.6) + rng.normal(0, 0.01, compute.size)
        return Curve(name=f"{variant}-s{seed}", compute=compute, score=score)

    tested = backtest({f"{one}": [level(seed, one) for seed in range(3)] for one in range(2)}, FitSettings())
    assert tested.is_carried
    assert tested.scores[0].skill < 0


@pytest.mark.parametrize("top", [1.0, 0.9, 0.7])
def test_a_run_that_ends_exactly_at_the_highest_pass_rate_is_held(top):
    def saturated(seed, variant):
        compute = np.arange(0, 41.0)
        noise = 0.003 * np.random.default_rng([seed, variant]).standard_normal(41)
        score = np.minimum(top * (1 - 0.8 * np.exp(-compute / 3)) + noise, top)
        return Curve(name=f"{variant}-s{seed}", compute=compute, score=np.where(compute > 25, top, score))

    curves = {f"{one}": [saturated(seed, one) for seed in range(3)] for one in range(2)}
    tested = backtest(curves, FitSettings(ceiling=top))
    assert [(one.num_runs, one.coverage) for one in tested.scores] == [(6, 1.0)] * 3
    assert max(one.hi for one in tested.checks if one.hi is not None) == pytest.approx(top)


def test_the_interval_score_is_that_of_gneiting_and_raftery():
    measured, lo, hi = np.array([0.5, 0.5, 0.5]), np.array([0.4, 0.55, 0.3]), np.array([0.6, 0.65, 0.45])
    # 0.2; 0.1 + 40 * 0.05; 0.15 + 40 * 0.05
    assert mean_interval_score(measured, lo, hi) == pytest.approx((0.2 + 2.1 + 2.15) / 3)


def test_bias_mean_absolute_error_and_coverage_are_those_of_the_checks():
    def made(predicted, measured, lo, hi, carried):
        ends = {"carried_lo": carried - 0.05, "carried_hi": carried + 0.05}
        return Check(
            curve="c", fraction=0.3, predicted=predicted, measured=measured, lo=lo, hi=hi, carried=carried, **ends
        )

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
    # 0.08, 0.04 and 0.08 + 40 * 0.01; 0.1 each, of which none lies outside
    assert result.skill == pytest.approx(1 - 0.2 / 0.1)


def test_a_fraction_with_too_few_readings_says_how_many_are_needed():
    curve = noisy(3, np.arange(0, 8001, 800.0))
    told: list[tuple[int, int]] = []
    tested = backtest(
        {"v": [curve]}, FitSettings(), fractions=(0.3, 0.7, 0.9), done=lambda *counts: told.append(counts)
    )
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
    fallen = Curve(name="fallen", compute=curve.compute, score=scores, samples=curve.samples)
    (found,) = backtest({"v": [fallen]}, FitSettings(), fractions=(0.7,)).checks
    assert found.predicted is None
    assert found.reason.startswith("curve 'fallen': it collapsed after compute")
