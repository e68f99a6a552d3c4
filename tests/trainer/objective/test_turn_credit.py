"""Credit by turn against plain loops: what is compared, what is filtered, and what a rollout got beside its turns."""

import math
import random
import statistics
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
import torch
from trainer.own_functions import own_function
from trainer.tiny import make_group, make_prompt, random_policy, tiny_recipe

from scalerl.checks.own_process import try_own
from scalerl.learner.batch import make_batch
from scalerl.learner.torch_learner import TorchLearner
from scalerl.objective.advantages import advantages
from scalerl.objective.rewards import reward
from scalerl.objective.running_statistics import RunningStatistics
from scalerl.objective.trained_groups import trained_groups
from scalerl.objective.turn_credit import credited_rewards, rewards_at_tokens, spread
from scalerl.prompts.judge import Judge
from scalerl.recipe import Own
from scalerl.rollout import End, Episode, Group, Judgement, Rollout, Turn, returns_to_go
from scalerl.tasks import make_task
from scalerl.tokens.characters import CharacterTokenizer

TWO_TOKENS, SAID = 2, 1
"""Every turn has two tokens of the policy, and one of the environment behind it."""


def episode(prompt, rewards, *, discount=1.0, by_turn=True, end="lost", tokens_each=TWO_TOKENS):
    stride = tokens_each + SAID
    turns = tuple(
        Turn(start=stride * n, stop=stride * n + tokens_each, reward=reward) for n, reward in enumerate(rewards)
    )
    count = turns[-1].stop
    return Rollout(
        prompt=prompt,
        tokens=np.full(count, 7, dtype=np.int64),
        logprobs=np.full(count, -1.0, dtype=np.float32),
        versions=np.zeros(count, dtype=np.int32),
        forced=np.zeros(count, dtype=np.bool_),
        truncated=False,
        episode=Episode(turns=turns, end=cast(End, end), discount=discount, by_turn=by_turn),
    )


def group_of(rewards, *, discount=1.0, by_turn=True, beside=0.0, name="p"):
    """A group whose episodes have these rewards by turn, each with `beside` in all."""
    prompt = make_prompt(name)
    rollouts = tuple(episode(prompt, row, discount=discount, by_turn=by_turn) for row in rewards)
    totals = tuple(sum(discount**n * r for n, r in enumerate(row)) + beside for row in rewards)
    return Group(prompt=prompt, rollouts=rollouts, rewards=totals, outcomes=("wrong",) * len(rewards))


def test_returns_are_discounted_sums():
    assert returns_to_go([0, 1], 0.5) == [0.5, 1]
    assert returns_to_go([1, 0, 4], 0.5) == [2, 2, 4]
    assert returns_to_go([3.0], 0.9) == [3.0]


@pytest.mark.parametrize("normalisation", ["none", "prompt", "batch", "leave_one_out"])
@pytest.mark.parametrize("seed", range(8))
def test_every_turn_is_compared_with_the_same_turn_of_the_others(seed, normalisation):
    draws = random.Random(seed)
    discount = draws.choice([1.0, 0.7])
    groups, expected = [], []
    for number in range(4):
        beside = draws.choice([0.0, -0.3])
        if number == 2:  # a task of one turn beside them
            rewards = [draws.choice([1.0, -1.0, 0.3]) for _ in range(3)]
            groups.append(make_group("single", [[7, 1]] * 3, [[-1.0] * 2] * 3, rewards))
            compared = [[(i, reward) for i, reward in enumerate(rewards)]]
        else:
            rows = [
                [draws.choice([0.0, 0.5, 1.0]) for _ in range(draws.randint(1, 4))] for _ in range(draws.randint(2, 4))
            ]
            groups.append(group_of(rows, discount=discount, beside=beside, name=f"p{number}"))
            rows = [[*row[:-1], row[-1] + beside] for row in rows]
            compared = []
            for n in range(max(map(len, rows))):
                at_turn = []
                for i, row in enumerate(rows):
                    if len(row) > n:
                        at_turn.append((i, sum(discount ** (m - n) * row[m] for m in range(n, len(row)))))
                compared.append(at_turn)
        for n, at_turn in enumerate(compared):
            mean = statistics.fmean(value for _, value in at_turn)
            for i, value in at_turn:
                others = [other for j, other in at_turn if j != i]
                sd = statistics.pstdev(value for _, value in at_turn) + 1e-6
                advantage = {
                    "none": value - mean,
                    "batch": value - mean,
                    "prompt": (value - mean) / sd,
                    "leave_one_out": value - statistics.fmean(others) if others else 0.0,
                }[normalisation]
                expected.append((number, i, n, advantage))
    if normalisation == "batch":
        sd = statistics.pstdev([one[3] for one in expected]) + 1e-6
        expected = [(*one[:3], one[3] / sd) for one in expected]
    given, credited = credited_rewards(groups)
    advantage_PG, _ = advantages(given, normalisation, RunningStatistics())
    batch = make_batch(groups)
    found = spread(advantage_PG, credited, batch.host_mask_BT)
    first = [sum(len(group.rollouts) for group in groups[:number]) for number in range(len(groups))]
    wanted = torch.zeros_like(found)
    for number, i, n, advantage in expected:
        row, start = first[number] + i, 5 + n * (TWO_TOKENS + SAID)
        wanted[row, start : start + TWO_TOKENS] = advantage
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-9)


def test_equal_sums_of_different_turns_are_a_signal_only_with_credit_by_turn():
    early_or_late = [[1.0, 0.0], [0.0, 1.0]]
    longer = [[0.5], [0.5, 0.0], [0.5, 0.0]]  # only the second turn of two differs in nothing
    alone = [[0.5, 0.0], [0.5, 0.0, 0.0]]
    for rows, by_turn, varies in [
        (early_or_late, True, True),
        (early_or_late, False, False),
        (longer, True, False),
        (alone, True, False),
        ([[0.0, 0.5], [0.5]], True, False),  # the second turn has nothing to be compared with
        ([[0.5], [0.6]], True, True),
    ]:
        group = group_of(rows, by_turn=by_turn)
        assert group.zero_variance is not varies
        assert trained_groups("drop", [group]) == trained_groups("resample", [group]) == [varies]
        assert trained_groups("keep", [group]) == [True]
        given, _ = credited_rewards([group])
        advantage_PG, _ = advantages(given, "none", RunningStatistics())
        assert bool(advantage_PG.abs().max() > 1e-9) is varies
    # Equal rewards in another order have equal sums.
    prompt = make_prompt("p")
    assert episode(prompt, [0.1, 0.2, 0.3]).episode.earned == episode(prompt, [0.3, 0.2, 0.1]).episode.earned


def test_a_penalty_in_the_reward_belongs_to_the_turn_whose_tokens_it_is_of():
    recipe = tiny_recipe(
        kl={"coefficient": 0.5, "estimator": "k1", "where": "reward"}, advantage="none", zero_variance="keep"
    )
    learner = TorchLearner(random_policy(recipe), recipe)
    groups = [group_of([[0.0, 1.0], [0.5]], discount=0.5)]
    batch = learner.with_scores(make_batch(groups))
    penalties = (0.5 * (batch.behaviour_BT - batch.reference_BT)).double()
    first = [float(penalties[row, 5:7].sum()) for row in (0, 1)]
    second = 1.0 - float(penalties[0, 8:10].sum())
    returns = [0.0 - first[0] + 0.5 * second, 0.5 - first[1]]
    found = learner.advantages(groups, batch)
    assert found[0, 5].item() == pytest.approx(returns[0] - statistics.fmean(returns), rel=1e-5)
    assert found[1, 6].item() == pytest.approx(returns[1] - statistics.fmean(returns), rel=1e-5)
    assert found[0, 8].item() == 0.0  # no other episode has a second turn
    assert found[0, 7].item() == 0.0


GAME = {"type": "episodes", "environment": "guess", "turns": 4, "train": 2, "validation": 2, "credit": "turn"}


def judged(recipe, rollouts):
    made = make_task(recipe.tasks[0], CharacterTokenizer())
    return Judge(made, recipe).group(rollouts[0].prompt, rollouts)


def test_the_length_penalty_of_won_episodes_is_by_the_limit_of_their_own_task():
    # 9 tokens a turn, 36 in four turns. 12 are within 36 - 18; 27: (36 - 27) / 18 - 1 = -1 / 2.
    tasks = [*tiny_recipe().model_dump(mode="json")["tasks"], GAME]
    recipe = tiny_recipe(
        tasks=tasks, length_control={"type": "penalty", "cache": 0.5}, model={"tokenizer": "characters"}
    )
    assert [recipe.most_written_in(name) for name in ("k_smallest", "guess")] == [9, 36]
    prompt = replace(make_prompt("0"), task="guess")
    rollouts = [
        episode(prompt, [0.1, 0.1, 1.0], end="won", tokens_each=4),
        episode(prompt, [0.1, 0.1, 1.0], end="won", tokens_each=9),
        episode(prompt, [0.1, 0.0, -1.0], end="rules_broken", tokens_each=9),
        episode(prompt, [0.1, 0.0], end="timed_out"),
    ]
    group = judged(recipe, rollouts)
    assert group.rewards == pytest.approx([1.2, 0.7, -0.9])
    assert group.outcomes == ("right", "right", "unparsable")
    # The penalty is the last turn's, and so of all returns.
    given, _ = credited_rewards([cast(Group, group)])
    assert given.rewards_PG[:, 1].tolist() == pytest.approx([0.7, 0.6, 0.5])
    # An answer of one turn is judged by the limit of one: (9 - 6) / 4.5 - 1.
    assert reward(Judgement("right"), 6, recipe, "k_smallest") == pytest.approx(1 - 1 / 3)


REWARD = """\
from scalerl.objective.rewards import RewardOutputs


def mine(given):
    return RewardOutputs(reward=10 * given.earned + 0.001 * given.length)
"""


def single_turn_recipe(own):
    return tiny_recipe(reward=own, length_control={"type": "none"})


def test_a_reward_of_ones_own_gets_what_the_environment_gave(tmp_path):
    own = own_function(tmp_path, "reward", REWARD).model_dump(mode="json")
    recipe = tiny_recipe(tasks=[GAME], reward=own, model={"tokenizer": "characters"}, length_control={"type": "none"})
    prompt = replace(make_prompt("0"), task="guess")
    group = judged(recipe, [episode(prompt, [0.25, 0.5], discount=0.5), episode(prompt, [1.0])])
    assert group.rewards == pytest.approx([5.0 + 0.004, 10.0 + 0.002])
    assert try_own("reward", cast(Own, recipe.reward), 60.0).level == "ok"
    assert reward(Judgement("wrong", score=0.25), 3, single_turn_recipe(own), "k_smallest") == -5 + 0.003
    given, _ = credited_rewards([cast(Group, group)])
    # By turn: 0.25, then 0.5 and all that was added to the 0.5 earned.
    last = 0.5 + 5.004 - 0.5
    assert given.rewards_PG.tolist() == [pytest.approx([0.25 + 0.5 * last, 10.002]), pytest.approx([last, 0.0])]
    assert given.mask_PG.tolist() == [[True, True], [True, False]]


def test_a_discount_that_a_critic_would_not_see_is_refused():
    critic = {"type": "value_network", "value_clip": None}
    game = {**GAME, "discount": 0.9}
    with pytest.raises(ValueError, match=r"guess: discount 0.9 has no effect with credit 'turn' and a critic"):
        tiny_recipe(tasks=[game], critic=critic, model={"tokenizer": "characters"})
    for fits in ({"credit": "episode"}, {"discount": 1.0}):
        tiny_recipe(tasks=[{**game, **fits}], critic=critic, model={"tokenizer": "characters"})
    assert math.isclose(episode(make_prompt("0"), [0.5, 1.0], discount=0.9).episode.earned, 1.4)


def test_the_reward_of_a_task_of_one_turn_comes_with_the_last_token_of_the_policys_own():
    mask = torch.tensor([[False, True, True, False, False], [False, False, True, True, True], [False] * 5])
    group = make_group("p", [[7] * 4] * 3, [[-1.0] * 4] * 3, [0.7, -1.0, 5.0], tokens_of_prompt=(6,))
    assert rewards_at_tokens([group], mask).tolist() == [[0, 0, 0.7, 0, 0], [0, 0, 0, 0, -1], [0] * 5]
