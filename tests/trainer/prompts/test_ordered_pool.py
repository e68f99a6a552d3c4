"""Easy prompts first: the order, the pace, and draws that are uniform within what is available."""

import hashlib
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from trainer.tiny import make_prompt

from scalerl.prompts.ordered_pool import easiest_first, pool_of
from scalerl.recipe import Ordered, ResolvedRecipe

# Ten prompts whose difficulty falls with the letter and whose length rises.
PROMPTS = [
    replace(make_prompt(name, tokens=(7,) * (3 + number)), difficulty=10 - number)
    for number, name in enumerate("abcdefghij")
]


def make(prompts=PROMPTS, seed=0, **settings) -> Any:
    return pool_of(prompts, Ordered(**settings), np.random.default_rng(seed))


def draw(pool, count):
    return [pool.draw().id for _ in range(count)]


@pytest.mark.parametrize(("by", "names"), [("difficulty", "jihgfedcba"), ("length", "abcdefghij")])
def test_prompts_are_sorted_by_difficulty_or_length(by, names):
    assert "".join(prompt.id for prompt in easiest_first(PROMPTS, by)) == names


def test_equal_prompts_are_sorted_by_the_hash_of_their_id_whatever_order_they_came_in():
    prompts = [replace(prompt, difficulty=number // 5) for number, prompt in enumerate(PROMPTS)]
    by_hash = sorted("abcde", key=lambda name: hashlib.sha256(f"k_smallest:{name}".encode()).digest())
    for order in (prompts, prompts[::-1]):
        assert [prompt.id for prompt in easiest_first(order, "difficulty")[:5]] == by_hash
    assert by_hash != sorted(by_hash)


def test_of_several_tasks_the_easiest_share_is_that_of_each():
    # The other task's difficulties are a thousand times larger.
    other = [replace(prompt, task="other", difficulty=1000 * prompt.difficulty) for prompt in PROMPTS]
    easiest = easiest_first([*PROMPTS, *other], "difficulty")[:4]
    assert sorted((prompt.task, prompt.id) for prompt in easiest) == [
        ("k_smallest", "i"), ("k_smallest", "j"), ("other", "i"), ("other", "j"),
    ]  # fmt: skip


def test_prompts_without_an_order_are_refused_and_told_what_would_have_one():
    same = [replace(prompt, difficulty=3) for prompt in PROMPTS]
    with pytest.raises(
        ValueError, match=r"all training prompts have the same difficulty \(3 in k_smallest\).*by: length"
    ):
        make(same)
    make(same, by="length")


@pytest.mark.parametrize(
    ("pace", "expected"),
    [
        # 10 prompts, 20 draws to the end: 2 + 8 n / 20 and 10 x 0.2^(1 - n / 20), rounded up.
        ("linear", [2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 7, 8, 8, 8, 9, 9, 10, 10, 10, 10]),
        ("exponential", [2, 3, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 7, 7, 8, 8, 9, 10, 10, 10]),
    ],
)
def test_more_prompts_are_available_with_every_draw(pace, expected):
    pool, seen = make(pace=pace, start=0.2, epochs=2), []
    for _ in expected:
        seen.append(pool.num_available)
        pool.draw()
    assert seen == expected


def test_nothing_is_drawn_that_is_not_available():
    for seed in range(20):
        pool = make(seed=seed, start=0.2, epochs=3)
        for _ in range(40):
            available = {prompt.id for prompt in pool.prompts[: pool.num_available]}
            assert pool.draw().id in available


def test_a_pass_draws_every_available_prompt_once():
    for seed in range(20):
        pool, passes = make(seed=seed, start=0.2, epochs=3), Counter()
        for _ in range(60):
            name = pool.draw().id
            passes[pool.epoch, name] += 1
        assert set(passes.values()) == {1}
        last = {name for number, name in passes if number == pool.epoch - 1}
        assert last == set("abcdefghij")
        # The first pass begins with the two that there are and takes in those that come while it lasts.
        assert {name for number, name in passes if number == 1} >= {"j", "i"}


def test_once_all_are_in_every_pass_is_an_epoch_in_a_fresh_order():
    pool = make(start=0.5, epochs=1)
    while pool.num_available < 10 or pool._left:
        pool.draw()
    passes = [draw(pool, 10) for _ in range(5)]
    assert all(sorted(one) == list("abcdefghij") for one in passes)
    assert len({tuple(one) for one in passes}) == 5


def test_draws_are_uniform_among_the_available():
    first = Counter(draw(make(seed=seed, start=0.5), 1)[0] for seed in range(4000))
    # 800 expected of each of the five easiest; the standard deviation is 25.
    assert set(first) == set("fghij")
    assert all(abs(count - 800) < 4 * 26 for count in first.values())


def test_a_pool_goes_on_exactly_where_its_state_was_taken():
    pool = make(epochs=2)
    draw(pool, 7)
    other = make(seed=5, epochs=2)
    draw(other, 3)
    other.load_state_dict(pool.state_dict())
    assert draw(pool, 40) == draw(other, 40)
    assert (other.epoch, other.num_drawn) == (pool.epoch, pool.num_drawn) == (pool.epoch, 47)


@pytest.mark.parametrize("setting", [{"start": 0}, {"start": 1}, {"epochs": 0}, {"pace": "root"}, {"by": "reward"}])
def test_what_would_be_no_curriculum_is_refused(setting):
    with pytest.raises(ValidationError):
        ResolvedRecipe.model_validate({"curriculum": {"type": "ordered", **setting}})
