"""Where a run stands, against the formulas on numbers made by hand."""

import numpy as np
import pytest
from curves import eq1

from ablations.answers.standing import ahead_of, median_law, standing_of
from ablations.fit.curve import Curve
from ablations.fit.engine.anchor import anchors
from ablations.fit.law_fit import CurveSet, LawFit
from ablations.fit.options import FitSettings
from ablations.fit.readings import Readings

COMPUTE = np.arange(100.0, 2401.0, 100.0)


def law_fit(score, *, As=(0.61,)):
    """Readings beside draws of known curves."""
    num = 4 * len(As)
    draws = CurveSet(A=np.repeat(As, 4), B=np.full(num, 1.92), C_mid=np.full(num, 2542.0), R_0=np.full(num, 0.3))
    readings = Readings(compute=COMPUTE, score=score, sampling_variance=0.0, anchors=tuple(anchors(None, 0.0, "free")))
    curve = Curve(name="c", compute=COMPUTE, score=score)
    return LawFit(curve=curve, settings=FitSettings(), readings=readings, draws=draws)


def test_a_run_stands_at_the_mean_of_its_last_readings_about_the_curve():
    # 24 readings: k = 24 / 12 = 2, but at least 3. They lie 0.02, 0.01 and 0.03 above the curve, the rest on it.
    offsets = np.zeros(24)
    offsets[-3:] = 0.02, 0.01, 0.03
    found = standing_of(law_fit(eq1(COMPUTE) + offsets))
    assert found.k == 3
    assert found.now == pytest.approx(float(eq1(2400.0)) + 0.02)
    assert found.carried == pytest.approx(float(eq1(COMPUTE[-3:]).mean()) + 0.02)
    assert found.drawdown == 0
    assert found.noise == pytest.approx(np.std(offsets[12:], ddof=1))


def test_a_drawdown_is_from_the_best_mean_of_readings():
    score = np.full(24, 0.4)
    score[10:13] = 0.52  # a mean of 0.52 over three readings
    assert standing_of(law_fit(score)).drawdown == pytest.approx(0.12)


def test_the_centre_adds_seven_tenths_of_the_rise_and_takes_twice_the_drawdown():
    ahead = np.array([2400.0, 4800.0])
    rise = float(eq1(4800.0) - eq1(2400.0))
    steady = law_fit(eq1(COMPUTE))
    centre, spread, risen = ahead_of(steady, [steady], ahead)
    assert risen == pytest.approx([0.0, rise])
    assert centre == pytest.approx([float(eq1(2400.0)), float(eq1(2400.0)) + 0.7 * rise])
    # The least noise is .001; L = ln 2.
    assert spread[1] == pytest.approx(np.sqrt((0.45 * rise) ** 2 + 1e-6 * (1 / 3 + 1.96 * np.log(2))))
    # With the noise of a mean of three readings.
    _, of_readings, _ = ahead_of(steady, [steady], ahead, num_readings=3)
    assert of_readings[1] ** 2 - spread[1] ** 2 == pytest.approx(1e-6 / 3)
    # A sibling that lost 0.12, half of which counts in the mean, less its noise over the square root of 3.
    score = np.full(24, 0.4)
    score[10:13] = 0.52
    fallen = law_fit(score)
    noise = standing_of(fallen).noise
    lower, _, risen = ahead_of(steady, [steady, fallen], ahead)
    assert centre - lower == pytest.approx(2 * ((0.12 - noise / np.sqrt(3)) - 0.001 / np.sqrt(3)) / 2)


def test_a_rise_is_half_the_runs_own_and_half_that_of_its_variant():
    own, other = law_fit(eq1(COMPUTE)), law_fit(eq1(COMPUTE, A=0.81), As=(0.81,))
    at = np.array([4800.0])
    rises = [float(eq1(4800.0, A=A) - eq1(2400.0, A=A)) for A in (0.61, 0.81)]
    centre = ahead_of(own, [own, other], at).centre
    assert centre == pytest.approx([float(eq1(2400.0)) + 0.7 * (0.75 * rises[0] + 0.25 * rises[1])])


def test_the_law_is_the_median_of_the_draws():
    assert median_law(law_fit(eq1(COMPUTE), As=(0.5, 0.61, 0.9)), COMPUTE) == pytest.approx(eq1(COMPUTE))
