"""Ends of axes."""

import numpy as np
import pytest

from ablations.report.figures.axes import range_without_outliers


def test_a_value_far_out_is_left_out_and_one_merely_large_is_not():
    middle = np.linspace(0.0, 1.0, 101)  # quartiles .25 and .75, so the outer fences are -1.25 and 2.25
    assert range_without_outliers([*middle, 2.2]) == (0.0, 2.2)
    assert range_without_outliers([*middle, 50.0]) == (0.0, 1.0)
    assert range_without_outliers([-50.0, *middle, np.nan, np.inf]) == (0.0, 1.0)


def test_decades_are_judged_on_a_logarithmic_axis():
    values = np.geomspace(1.0, 100.0, 101)  # the fences are 3 decades on either side of 10 ** .5 and 10 ** 1.5
    assert range_without_outliers([*values, 3e4], is_log=True) == pytest.approx((1.0, 3e4))
    assert range_without_outliers([*values, 1e20, 0.0], is_log=True) == pytest.approx((1.0, 100.0))


def test_at_least_the_middle_share_stays_inside_however_far_out_it_lies():
    values = [*[0.5] * 90, *range(1, 11)]  # no length of the middle half, so every other value is beyond the fences
    low, high = range_without_outliers(values)
    assert (low, high) == (0.5, 9.0)  # the 99th percentile of these 100 values is 9.01
