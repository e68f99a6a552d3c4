"""Mixes: drawn in proportion, judged each by its own task, a row each and their weighted mean."""

from collections import Counter
from functools import partial

import numpy as np
import pytest
from trainer.tiny import PolicySampler, make_cluster, make_group, make_prompt, random_policy, tiny_recipe

from scalerl.evaluation.drift import policy_drift
from scalerl.evaluation.held_out import HeldOutEvaluator, mean_of
from scalerl.prompts.mixed_pool import MixedPool, make_pool
from scalerl.prompts.pool import PromptPool
from scalerl.recipe import NoPositiveResampling, Ordered, Own, ResolvedRecipe, Uniform
from scalerl.schedules import pipeline
from scalerl.tasks import all_tasks
from scalerl.tokens import SymbolTokenizer

SORT = {"type": "k_smallest", "symbols": 8, "min_length": 2, "max_length": 3}
TWO = [
    SORT | {"name": "short", "max_length": 2, "train_prompts": 60, "validation_prompts": 8},
    SORT | {"name": "long", "min_length": 3, "train_prompts": 180, "validation_prompts": 16},
]
WEIGHTED = [TWO[0] | {"weight": 3}, TWO[1] | {"weight": 1}]


def mix_of(settings):
    return all_tasks(ResolvedRecipe.model_validate({"tasks": settings}).tasks, (), SymbolTokenizer()).trained


def test_shares_are_the_weights_or_else_the_numbers_of_training_prompts():
    assert mix_of(WEIGHTED).shares == {"short": 0.75, "long": 0.25}
    assert mix_of(TWO).shares == {"short": 0.25, "long": 0.75}


def pool_of(shares, rule=None, seed=0):
    prompts = {name: [make_prompt(f"{i}") for i in range(5)] for name in shares}
    pools = {name: PromptPool(prompts[name], rule or Uniform(), np.random.default_rng(seed)) for name in shares}
    return MixedPool(pools, shares)


def test_after_any_number_of_drawings_no_task_is_more_than_one_off_its_share():
    shares = {"a": 0.5, "b": 0.3, "c": 0.2}
    pool = pool_of(shares)
    for n in range(1, 500):
        pool.draw()
        assert all(abs(pool.drawn[name] - share * n) <= 1 for name, share in shares.items())
    assert sum(pool.drawn.values()) == 499


def test_every_task_has_epochs_of_its_own():
    recipe = tiny_recipe(tasks=WEIGHTED, curriculum={"type": "uniform"})
    pool = make_pool(recipe, mix_of(WEIGHTED), (0, 3))
    drawn = Counter((prompt.task, prompt.id) for prompt in (pool.draw() for _ in range(240)))
    # 180 drawings of 60 short prompts are three epochs; 60 of 180 long ones a third of one.
    assert {drawn[key] for key in drawn if key[0] == "short"} == {3}
    assert {drawn[key] for key in drawn if key[0] == "long"} == {1}
    assert pool.epoch == 1


def test_like_ids_of_two_tasks_have_histories_of_their_own():
    pool = pool_of({"a": 0.5, "b": 0.5}, NoPositiveResampling())
    group = make_group("3", [[5, 1]] * 2, [[-1.0, -1.0]] * 2, [1.0, 1.0])
    object.__setattr__(group.prompt, "task", "b")
    pool.record(group)
    assert [len(one.retired) for one in pool.pools.values()] == [0, 1]


def test_a_mixed_pool_goes_on_exactly_where_its_state_was_taken():
    pool, other = pool_of({"a": 0.6, "b": 0.4}), pool_of({"a": 0.6, "b": 0.4}, seed=9)
    for _ in range(7):
        pool.draw()
    state = pool.state_dict()
    expected = [pool.draw().id for _ in range(30)]
    other.load_state_dict(state)
    assert [other.draw().id for _ in range(30)] == expected


def test_a_single_task_is_drawn_as_if_there_were_no_mixes():
    recipe = tiny_recipe()
    task = all_tasks(recipe.tasks, (), SymbolTokenizer()).trained
    assert not isinstance(recipe.curriculum, Ordered | Own)
    pool, plain = (
        make_pool(recipe, task, (0, 3)),
        PromptPool(task.train, recipe.curriculum, np.random.default_rng((0, 3))),
    )
    assert [pool.draw() for _ in range(50)] == [plain.draw() for _ in range(50)]


def test_demonstrations_come_in_proportion():
    mix, rng = mix_of(WEIGHTED), np.random.default_rng(0)
    drawn = Counter(mix.demonstrate(rng, 0.0)[0].task for _ in range(2000))
    # Binomial: 1500 of 2000 with a standard deviation of 19.
    assert abs(drawn["short"] - 1500) < 4 * 19


def test_an_evaluation_has_a_row_for_each_task_and_one_for_all():
    recipe = tiny_recipe(tasks=WEIGHTED)
    policy, mix = random_policy(recipe), mix_of(WEIGHTED)
    evaluator = HeldOutEvaluator(recipe=recipe, task=mix, seed=0, drift=partial(policy_drift, start=policy))
    short, long, whole = evaluator.measure(PolicySampler(recipe, mix, policy), 0)
    assert [row["task"] for row in (short, long, whole)] == ["short", "long", "all"]
    assert (short["num_prompts"], short["num_samples"], long["num_prompts"]) == (8, 16, 16)
    for column in ("pass_rate", "mean_tokens", "truncated"):
        assert whole[column] == pytest.approx(0.75 * short[column] + 0.25 * long[column])
    assert whole["outcomes"]["wrong"] == short["outcomes"]["wrong"] + long["outcomes"]["wrong"]
    assert "share" not in whole
    # Variance of the mean in units of p (1 - p): (3/4)^2 / 16 + (1/4)^2 / 32 = 0.0371.
    assert whole["num_samples"] == round(1 / (9 / 256 + 1 / 512)) == 27


def test_shares_in_proportion_to_the_samples_add_them_up():
    parts = [{"share": share, "num_samples": n} for share, n in ((0.25, 100), (0.75, 300))]
    rest = {"pass_rate": 1.0, "num_prompts": 1, "mean_tokens": 1, "truncated": 0, "interrupted": 0}
    outcomes = dict.fromkeys(("right", "wrong", "unparsable", "timed_out", "crashed", "doubtful"), 0)
    assert mean_of([part | rest | {"outcomes": outcomes} for part in parts])["num_samples"] == 400


def test_a_mix_trains_on_groups_of_all_its_tasks_in_proportion():
    recipe = tiny_recipe(tasks=WEIGHTED, zero_variance="keep")
    cluster = make_cluster(recipe, random_policy(recipe))
    groups = [group for _ in range(12) for group in pipeline(cluster).groups]
    drawn = Counter(group.prompt.task for group in groups)
    assert abs(drawn["short"] / len(groups) - 0.75) < 0.1
    for group in groups:
        assert all(rollout.prompt.task == group.prompt.task for rollout in group.rollouts)
