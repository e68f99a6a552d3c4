"""Statistics kept batch by batch against those of all numbers at once."""

import random
import statistics

import pytest
import torch

from scalerl.objective.running_statistics import RunningStatistics


def test_nothing_seen_has_no_spread_and_adds_nothing():
    assert RunningStatistics().std == 0
    seen = RunningStatistics().including(torch.tensor([1.0, 2.0, 3.0]))
    assert seen.including(torch.empty(0)) == seen


def test_batches_of_any_size_give_the_statistics_of_all_numbers_at_once():
    rng = random.Random(0)
    seen, numbers = RunningStatistics(), []
    for size in (1, 7, 2, 300, 1, 64):
        batch = [rng.gauss(rng.uniform(-3, 3), 2) for _ in range(size)]
        numbers += batch
        seen = seen.including(torch.tensor(batch, dtype=torch.float64))
        assert seen.count == len(numbers)
        assert seen.mean == pytest.approx(statistics.fmean(numbers), rel=1e-12)
        assert seen.std == pytest.approx(statistics.pstdev(numbers), rel=1e-12, abs=1e-15)


def test_a_large_mean_does_not_swallow_a_small_spread():
    # Sums of squares would lose all digits here: 1e16 against a variance of 2/3.
    seen = RunningStatistics()
    for number in (1e8 - 1, 1e8, 1e8 + 1):
        seen = seen.including(torch.tensor([number], dtype=torch.float64))
    assert seen.std == pytest.approx((2 / 3) ** 0.5, rel=1e-9)
