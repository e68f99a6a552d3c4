"""Rewards and DAPO's length penalty by hand."""

import pytest
from trainer.tiny import tiny_recipe

from scalerl.objective.rewards import length_penalty, reward
from scalerl.rollout import Judgement


@pytest.mark.parametrize(
    ("length", "penalty"),
    [(0, 0.0), (11999, 0.0), (12000, 0.0), (12500, -0.25), (13000, -0.5), (14000, -1.0), (20000, -1.0)],
)
def test_the_papers_penalty_falls_from_12k_to_14k(length, penalty):
    # clip((14000 - |y|) / 2000 - 1, -1, 0)
    assert length_penalty(length, 14000, 2000) == pytest.approx(penalty, abs=1e-12)


@pytest.mark.parametrize("control", ["interruption", "none"])
@pytest.mark.parametrize("length", [1, 7])
def test_without_a_penalty_rewards_are_plus_and_minus_one(control, length):
    recipe = tiny_recipe(length_control={"type": control})
    assert reward(Judgement("right"), length, recipe) == 1.0
    assert reward(Judgement("wrong"), length, recipe) == -1.0
    assert reward(Judgement("unparsable"), length, recipe) == -1.0


def test_only_right_answers_are_penalised():
    # thinking 4 + the end of thinking + answer 2: L_max = 7; a cache of 4 / 7 makes L_cache = 4.
    generation = {"thinking": 4, "answer": 2}
    recipe = tiny_recipe(length_control={"type": "penalty", "cache": 4 / 7}, generation=generation)
    lengths = range(1, 8)
    assert [reward(Judgement("right"), n, recipe) for n in lengths] == pytest.approx([1, 1, 1, 0.75, 0.5, 0.25, 0])
    assert [reward(Judgement("wrong"), n, recipe) for n in lengths] == [-1] * 7
    assert [reward(Judgement("unparsable"), n, recipe) for n in lengths] == [-1] * 7
