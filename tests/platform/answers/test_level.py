"""Levels at equal compute, by hand and by quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad

from ablations.answers.level import level_of, mean_weights
from ablations.fit.curve import Curve


def curve(compute, score, samples=None) -> Curve:
    given = None if samples is None else np.full(len(compute), samples)
    return Curve(name="c", compute=np.array(compute), score=np.array(score), samples=given)


def test_the_level_is_the_mean_of_the_last_third():
    # Over [6, 9]: .5 at 6 and .6 at 9, a line between them.
    found = level_of(curve([0.0, 3, 6, 9], [0.1, 0.3, 0.5, 0.6], samples=100), 9.0)
    assert found is not None
    assert found.value == pytest.approx(0.55)
    assert found.variance == pytest.approx((0.5 * 0.5 + 0.6 * 0.4) / 4 / 100)


def test_runs_that_were_read_at_other_computes_are_compared_at_the_same():
    compute = np.array([0, 100.0, 370, 480, 655, 810, 1000, 1300])
    score = np.array([0.3, 0.35, 0.4, 0.5, 0.47, 0.52, 0.55, 0.6])
    found = level_of(curve(compute, score), 900.0)
    assert found is not None
    exact = quad(np.interp, 600, 900, args=(compute, score), points=[655, 810], epsabs=1e-12)[0] / 300
    assert found.value == pytest.approx(exact, abs=1e-12)
    weights = mean_weights(compute, 600, 900)
    assert weights.sum() == pytest.approx(1)
    assert not weights[[0, 1, 2, 7]].any()


@pytest.mark.parametrize("compute", [[650.0, 800, 1000], [0.0, 400, 899]])
def test_readings_that_begin_too_late_or_end_too_early_have_no_level(compute):
    assert level_of(curve(compute, [0.3, 0.4, 0.5]), 900.0) is None


def test_readings_too_far_apart_have_no_level_since_a_line_lies_below_the_curve():
    def half_way(compute):
        return curve(compute, [0.2 + 0.5 * one / (one + 100) for one in compute])

    exact = 0.2 + 0.5 * (1 - 100 * np.log(300 / (100 + 400 / 3)) / (200 / 3))  # the mean of the curve over [133, 200]
    every_10 = level_of(half_way(np.arange(0.0, 201, 10)), 200.0)
    assert every_10 is not None
    assert every_10.value == pytest.approx(exact, abs=1e-4)
    assert level_of(half_way(np.arange(0.0, 4001, 400)), 200.0) is None
    assert level_of(half_way(np.arange(0.0, 4001, 200)), 200.0) is None
    doubling = level_of(half_way(np.array([0, 12.5, 25, 50, 100, 200, 400])), 200.0)
    assert doubling is not None
    assert doubling.value == pytest.approx(exact, abs=0.010)
