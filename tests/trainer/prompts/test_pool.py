"""Epochs of prompts, and No-Positive-Resampling."""

from collections import Counter

import numpy as np
import pytest
from trainer.tiny import make_prompt

from scalerl.prompts.mixed_pool import MixedPool
from scalerl.prompts.pool import AllRetired, PromptPool
from scalerl.recipe import NoPositiveResampling, Uniform
from scalerl.rollout import Group

PROMPTS = [make_prompt(name) for name in "abcdefgh"]
NAMES = sorted(prompt.id for prompt in PROMPTS)


def make_pool(curriculum, seed=0):
    return PromptPool(PROMPTS, curriculum, np.random.default_rng(seed))


def draw(pool, count):
    return [pool.draw().id for _ in range(count)]


def group(name, num_right, generations=10):
    """Ten rollouts of a prompt, so many of them right."""
    statuses = ("right",) * num_right + ("wrong",) * (generations - num_right)
    rewards = tuple(1.0 if status == "right" else -1.0 for status in statuses)
    return Group(prompt=make_prompt(name), rollouts=(), rewards=rewards, outcomes=statuses)


@pytest.mark.parametrize("curriculum", [Uniform(), NoPositiveResampling()])
def test_every_prompt_comes_once_an_epoch_in_a_fresh_order(curriculum):
    pool = make_pool(curriculum)
    epochs = [draw(pool, 8) for _ in range(5)]
    assert all(sorted(epoch) == NAMES for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 5
    assert pool.epoch == 5


def test_orders_are_uniform():
    first = Counter(name for seed in range(4000) for name in draw(make_pool(Uniform(), seed), 1))
    # 500 expected of each; the standard deviation is 21.
    assert all(abs(first[name] - 500) < 4 * 21 for name in NAMES)


def test_a_mastered_prompt_is_out_of_all_later_epochs():
    pool = make_pool(NoPositiveResampling(threshold=0.9))
    draw(pool, 8)
    pool.record(group("c", 9))
    pool.record(group("d", 8))
    for _ in range(3):
        assert sorted(draw(pool, 7)) == sorted(set(NAMES) - {"c"})
    assert {name for _, name in pool.retired} == {"c"}


def test_a_prompt_mastered_in_mid_epoch_does_not_come_back_in_it():
    pool = make_pool(NoPositiveResampling())
    first = draw(pool, 3)
    missing = sorted(set(NAMES) - set(first))
    pool.record(group(missing[0], 10))
    assert sorted(draw(pool, 4)) == missing[1:]
    assert pool.epoch == 1


def test_a_uniform_curriculum_retires_nothing():
    pool = make_pool(Uniform())
    for name in NAMES:
        pool.record(group(name, 10))
    assert sorted(draw(pool, 8)) == NAMES
    assert not pool.retired


def test_the_pass_rate_is_a_mean_over_all_groups_so_far():
    pool = make_pool(NoPositiveResampling(threshold=0.9, min_groups=1))
    pool.record(group("a", 6))
    pool.record(group("a", 10))  # mean 0.8
    assert not pool.retired
    pool.record(group("a", 10))  # 26 / 30
    pool.record(group("a", 10))  # 36 / 40 = 0.9
    assert {name for _, name in pool.retired} == {"a"}


def test_one_lucky_group_is_not_enough_where_more_are_asked_for():
    pool = make_pool(NoPositiveResampling(threshold=0.9, min_groups=3))
    pool.record(group("a", 10))
    pool.record(group("a", 10))
    assert not pool.retired
    pool.record(group("a", 10))
    assert {name for _, name in pool.retired} == {"a"}


def test_a_rate_that_reaches_the_threshold_only_up_to_rounding_counts():
    pool = make_pool(NoPositiveResampling(threshold=0.7))
    for num_right in (6, 7, 8):  # 0.6 + 0.7 + 0.8 is not 2.1 in binary
        pool.record(group("a", num_right))
    assert {name for _, name in pool.retired} == {"a"}


def test_when_all_are_mastered_none_comes_back_and_the_error_says_which_setting_would():
    pool = make_pool(NoPositiveResampling())
    draw(pool, 8)
    for name in NAMES[1:]:
        pool.record(group(name, 10))
    assert draw(pool, 3) == ["a"] * 3
    pool.record(group("a", 10))
    with pytest.raises(AllRetired, match=r"all 8 training prompts are retired.* 0\.9.*when_exhausted: restart"):
        pool.draw()


def test_a_task_without_prompts_is_passed_over_until_no_task_has_any():
    pools = {name: make_pool(NoPositiveResampling()) for name in ("one", "other")}
    pool = MixedPool(pools, {"one": 0.5, "other": 0.5})
    for name in NAMES:
        pools["one"].record(group(name, 10))
    for _ in range(20):
        pool.draw()
    assert pool.drawn == {"one": 0, "other": 20}
    for name in NAMES:
        pools["other"].record(group(name, 10))
    with pytest.raises(AllRetired, match="all 8 training prompts"):
        pool.draw()


def test_when_all_are_mastered_all_come_back_if_the_curriculum_restarts():
    pool = make_pool(NoPositiveResampling(when_exhausted="restart"))
    draw(pool, 8)
    for name in NAMES:
        pool.record(group(name, 10))
    assert sorted(draw(pool, 8)) == NAMES
    assert not pool.retired
    assert not pool.history


def test_a_pool_goes_on_exactly_where_its_state_was_taken():
    pool = make_pool(NoPositiveResampling())
    draw(pool, 5)
    pool.record(group("c", 9))
    pool.record(group("a", 4))
    state = pool.state_dict()
    other = make_pool(NoPositiveResampling(), seed=7)
    draw(other, 3)
    other.load_state_dict(state)
    for one in (pool, other):
        one.record(group("a", 10))
    assert draw(pool, 40) == draw(other, 40)
    assert (other.history, other.retired, other.epoch) == (pool.history, pool.retired, pool.epoch)
