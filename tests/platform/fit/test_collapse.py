"""Collapses in simulated runs with known onsets, and what must not be taken for one."""

import curves
import numpy as np
import pytest
from curves import EVERY, NUM_SAMPLES, eq1, measured

from ablations.fit.collapse import (
    find_collapse,
    forecasts_by_law,
)


def readings(end=16_000.0):
    """Compute of each reading after step 0."""
    return curves.readings(end=end)[1:]


def fallen(compute, onset, per_1k):
    """Eq. 1 up to the onset, from there a straight fall."""
    return np.where(compute > onset, eq1(onset) - per_1k * (compute - onset) / 1000, eq1(compute))


def first_alarm(compute, score):
    """The number of readings after which a run that is judged at every evaluation is said to have collapsed."""
    sampling_variance = 0.25 / NUM_SAMPLES
    ends = range(6, score.size + 1)
    found = (
        end
        for end in ends
        if find_collapse(compute[:end], score[:end], start_score=0.3, sampling_variance=sampling_variance)
    )
    return next(found, None)


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_healthy_runs_raise_no_alarm_at_any_of_75_evaluations(rho):
    compute = readings()
    alarms = [first_alarm(compute, measured(eq1(compute), seed, rho=rho)) for seed in range(30)]
    # One run in twenty is allowed: of 30, more than 4 in one case of 60.
    assert sum(alarm is not None for alarm in alarms) <= 4


@pytest.mark.parametrize(("per_1k", "within", "rho"), [(0.02, 6, 0.7), (0.05, 5, 0.0)])
def test_a_decline_is_found_within_a_few_evaluations(per_1k, within, rho):
    delays = []
    for seed in range(25):
        onset = 4000 + 250.0 * seed
        compute = readings(onset + 12 * EVERY)
        before = int(np.sum(compute <= onset))
        alarm = first_alarm(compute, measured(fallen(compute, onset, per_1k), seed, rho=rho))
        assert alarm is not None
        assert alarm > before
        delays.append(alarm - before)
    assert np.median(delays) <= within


def test_the_last_reading_before_a_decline_is_named():
    compute = readings()
    onset = compute[40]
    score = measured(fallen(compute, onset, 0.05), 1)
    found = find_collapse(compute, score, start_score=0.3)
    assert found is not None
    assert 38 <= found.index <= 42
    assert found.index < found.alarm <= 46


def test_a_curve_that_only_rises_more_slowly_than_forecast_has_not_collapsed():
    compute = readings(12_000)
    onset = 3000.0
    slower = np.where(compute > onset, eq1(onset) + 0.004 * (compute - onset) / 1000, eq1(compute))
    # At 5k GPU-hours the law is nine standard deviations of a reading above.
    assert eq1(5000) - slower[np.searchsorted(compute, 5000)] > 9 * 0.006
    for seed in range(10):
        assert first_alarm(compute, measured(slower, seed)) is None


@pytest.mark.parametrize("position", [40, -1])
def test_one_evaluation_that_went_wrong_is_no_collapse(position):
    compute = readings(12_000)
    score = measured(eq1(compute), 3)
    score[position] -= 0.2
    assert find_collapse(compute, score, start_score=0.3) is None


def test_a_run_that_has_recovered_has_not_collapsed():
    compute = readings()
    score = measured(eq1(compute), 4)
    score[35:45] -= 0.1
    assert find_collapse(compute[:42], score[:42], start_score=0.3) is not None
    assert find_collapse(compute, score, start_score=0.3) is None


@pytest.mark.parametrize("seed", range(2))
def test_a_collapse_of_a_short_noisy_curve_is_found(seed):
    compute = np.arange(1.0, 13.0)
    law = np.array([0.25, 0.34, 0.41, 0.46, 0.49, 0.51, 0.52, 0.42, 0.32, 0.22, 0.15, 0.12])
    score = law + 0.02 * np.random.default_rng(seed).standard_normal(12)
    for start_score in (0.2, None):
        found = find_collapse(compute, score, start_score=start_score)
        assert found is not None
        assert 5 <= found.index <= 7


@pytest.mark.parametrize(("sd", "rho"), [(0.01, 0.0), (0.03, 0.7)])
def test_short_noisy_plateaus_seldom_raise_an_alarm(sd, rho):
    compute = np.arange(1.0, 13.0)
    law = 0.2 + 0.4 / (1 + (1 / compute) ** 1.9)
    alarms = [first_alarm(compute, measured(law, seed, sd=sd, rho=rho)) for seed in range(60)]
    # One run in twenty: of 60, more than 7 in one case of 100.
    assert sum(alarm is not None for alarm in alarms) <= 7


def test_a_curve_that_never_rose_has_not_collapsed():
    compute = readings()
    falling = measured(0.4 - 0.2 * compute / compute[-1], 5)
    assert find_collapse(compute, falling, start_score=0.4) is None
    assert find_collapse(compute, np.full(compute.size, 0.25)) is None


def test_the_forecast_carries_the_variance_that_the_fit_gives_it():
    compute, C_next, floor = readings(6000), 6639.0, 4e-5
    (expected,), (variance,) = forecasts_by_law(np.log(compute), eq1(compute), np.log([C_next]), floor)
    assert expected == pytest.approx(eq1(C_next), abs=1e-6)

    # The delta method in other parameters and with difference quotients.
    parameters = np.array([0.61, 1.92, 2542.0, 0.3])

    def slopes(C):
        steps = 1e-5 * np.diag(parameters)
        quotients = [(eq1(C, *(parameters + step)) - eq1(C, *(parameters - step))) / (2 * step.sum()) for step in steps]
        return np.stack(quotients, axis=-1)

    J, j = slopes(compute), slopes(C_next)
    share = j @ np.linalg.inv(J.T @ J) @ j
    assert share > 0.3
    assert variance == pytest.approx(floor * (1 + share), rel=1e-4)
