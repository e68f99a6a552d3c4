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


def test_the_mean_ends_where_the_first_seed_ends():
    assert [compute for _, compute, _ in mean_curve([curve([0, 5, 10], [0.1] * 3), curve([0, 7], [0.3] * 2)])] == [0, 5]


def test_without_a_curve_there_is_no_mean():
    assert mean_curve([]) == []
