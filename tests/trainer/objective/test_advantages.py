"""Advantages against numbers worked out by hand."""

import math

import pytest
import torch
from trainer.tiny import make_group

from scalerl.objective.advantages import (
    Rewards,
    advantages,
    leave_one_out,
    normalise_none,
    normalise_running,
)
from scalerl.objective.running_statistics import RunningStatistics

ROWS = [[1.0, -1.0, -1.0, -1.0], [1.0, 1.0, -1.0, -1.0], [1.0, 1.0, 1.0, 1.0]]
REWARDS = Rewards.of(ROWS)
# Row 0: mean -1/2, deviations 3/2 and three times -1/2, variance (9/4 + 3/4) / 4 = 3/4.
# Row 1: mean 0, deviations 1, 1, -1, -1, variance 1.  Row 2: all zero.


def close(result, expected):
    torch.testing.assert_close(result, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


def group_of(rewards):
    return make_group("p", [[5, 1]] * len(rewards), [[-1.0, -1.0]] * len(rewards), list(rewards))


def test_a_prompt_whose_generations_agree_has_zero_variance():
    assert [group_of(row).zero_variance for row in ROWS] == [False, False, True]


def test_leaving_one_out_takes_off_the_mean_of_the_others():
    # Of 1, -1, -1, -1 the others of the first have mean -1, and those of another -1/3.
    expected = [[2, -2 / 3, -2 / 3, -2 / 3], [4 / 3, 4 / 3, -4 / 3, -4 / 3], [0, 0, 0, 0]]
    close(leave_one_out(REWARDS).advantage_PG, expected)
    assert leave_one_out(Rewards.of([[1.0]])).advantage_PG.tolist() == [[0.0]]


def test_running_statistics_divide_by_the_std_of_all_advantages_so_far():
    # First batch, row 0: squares 3 over four advantages. Second, row 1: squares 3 + 4 over eight.
    first, second = math.sqrt(3 / 4) + 1e-6, math.sqrt(7 / 8) + 1e-6
    result, statistics = normalise_running(Rewards.of(ROWS[:1]), RunningStatistics())
    close(result, [[1.5 / first] + [-0.5 / first] * 3])
    result, statistics = normalise_running(Rewards.of(ROWS[1:2]), statistics)
    close(result, [[1 / second] * 2 + [-1 / second] * 2])
    assert (statistics.count, statistics.squares) == (8, pytest.approx(7, rel=1e-12))


@pytest.mark.parametrize("normalisation", ["batch", "prompt", "none", "leave_one_out"])
def test_only_running_normalisation_keeps_statistics(normalisation):
    _, statistics = advantages(REWARDS, normalisation, RunningStatistics())
    assert statistics == RunningStatistics()
    _, statistics = advantages(REWARDS, "running", RunningStatistics())
    assert statistics.count == 12


@pytest.mark.parametrize("normalisation", ["batch", "prompt", "none", "leave_one_out", "running"])
def test_a_single_prompt_is_enough(normalisation):
    result, _ = advantages(Rewards.of(ROWS[1:2]), normalisation, RunningStatistics())
    one = {"none": 1.0, "leave_one_out": 3 / 4}.get(normalisation, 1 + 1e-6)
    close(result, [[1 / one, 1 / one, -1 / one, -1 / one]])


@pytest.mark.parametrize("normalisation", ["batch", "prompt", "none", "leave_one_out", "running"])
def test_kept_prompts_of_one_reward_give_zeros_and_no_nan(normalisation):
    result, _ = advantages(Rewards.of([ROWS[2], ROWS[2]]), normalisation, RunningStatistics())
    close(result, [[0] * 4, [0] * 4])


@pytest.mark.parametrize("normalisation", ["batch", "prompt", "none", "leave_one_out", "running"])
def test_equal_fractional_rewards_have_no_advantage_even_when_kept(normalisation):
    # 0.9 is what the length penalty may leave; in float32 the mean of 24 of them is off by an ulp, which a division by
    # the 1e-6 of the standard deviation would blow up.
    result, _ = advantages(Rewards.of([[0.9] * 24] * 2), normalisation, RunningStatistics())
    assert result.abs().max() < 1e-8


UNEQUAL = [[1.0, -1.0, -1.0], [0.5, -1.0], [1.0, 0.25, -1.0, -1.0]]


def by_loop(normalisation, earlier=()):
    """Advantages of UNEQUAL, one number after the other in float64; `earlier` advantages count in the running std."""
    centred = [[r - math.fsum(row) / len(row) for r in row] for row in UNEQUAL]
    of_all = [a for row in centred for a in row]

    def std(values):
        mean = math.fsum(values) / len(values)
        return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values)) + 1e-6

    divisors = {
        "none": [1.0] * 3,
        "leave_one_out": [1 - 1 / len(row) for row in UNEQUAL],
        "prompt": [std(row) for row in UNEQUAL],
        "batch": [std(of_all)] * 3,
        "running": [std([*earlier, *of_all])] * 3,
    }[normalisation]
    return [a / divisor for row, divisor in zip(centred, divisors, strict=True) for a in row]


@pytest.mark.parametrize("normalisation", ["batch", "prompt", "none", "leave_one_out", "running"])
def test_groups_of_unequal_sizes_agree_with_a_loop_over_each_of_their_rewards(normalisation):
    rewards = Rewards.of(UNEQUAL)
    _, earlier = advantages(REWARDS, "running", RunningStatistics())
    result, _ = advantages(rewards, normalisation, earlier)
    expected = by_loop(normalisation, earlier=normalise_none(REWARDS).advantage_PG.flatten().tolist())
    close(result[rewards.mask_PG], expected)
    assert not result[~rewards.mask_PG].any()
