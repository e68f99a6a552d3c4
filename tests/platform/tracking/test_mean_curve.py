"""The mean curve of a variant's seeds: worked out by hand."""

import numpy as np
import pytest

from ablations.fit.curve import Curve
from ablations.tracking.mean_curve import mean_curve


def curve(compute: list[float], score: list[float], step: list[int] | None = None) -> Curve:
    steps = None if step is None else np.array(step)
    return Curve(name="", compute=np.array(compute), score=np.array(score), step=steps)


def test_seeds_evaluated_at_the_same_compute_are_averaged_there():
    found = mean_curve([curve([0, 10], [0.25, 0.5], [0, 4]), curve([0, 10], [0.75, 1.0], [0, 5])])
    assert found == [(0, 0, 0.5), (4, 10, 0.75)]


def test_a_seed_evaluated_elsewhere_counts_with_the_line_between_its_readings():
    # at 10 the second lies a quarter of the way from 0.2 to 0.6: 0.3
    found = mean_curve([curve([0, 10], [0.2, 0.5]), curve([0, 40], [0.2, 0.6])])
    assert [step for step, _, _ in found] == [0, 1]
    assert [rate for _, _, rate in found] == pytest.approx([0.2, 0.4])


def test_the_mean_ends_at_the_compute_that_all_seeds_reach():
    # at 8 of 5 to 10 the first lies three fifths of the way from 0.1 to 0.6, step 40 to 50
    found = mean_curve([curve([0, 5, 10], [0.1, 0.1, 0.6], [0, 40, 50]), curve([0, 8], [0.2, 0.5])])
    assert [(step, compute) for step, compute, _ in found] == [(0, 0), (40, 5), (46, 8)]
    assert [rate for _, _, rate in found] == pytest.approx([0.15, 0.24375, 0.45])
    # as of three seeds that were evaluated at the same steps at slightly different compute
    ends = (19.9, 20.0, 20.1)
    found = mean_curve([curve([0, 10, end], [0.2, 0.6, 0.639 + 0.001 * end], [0, 10, 20]) for end in ends[::-1]])
    assert found[-1] == (20, 19.9, pytest.approx(0.6588, abs=1e-3))


def test_the_mean_of_seeds_of_which_one_ends_before_the_first_reading_is_empty():
    assert mean_curve([curve([5, 10], [0.1, 0.2]), curve([0, 3], [0.1, 0.2])]) == []


def test_without_a_curve_there_is_no_mean():
    assert mean_curve([]) == []
