"""Dynamic sampling: batches full of groups with variance, and an end to the waiting."""

import copy
import random

import pytest
from trainer.schedules.test_schedules import recipe_of
from trainer.tiny import fixed_policy, make_cluster, random_policy

from scalerl.rollout import Judgement
from scalerl.schedules import SCHEDULES
from scalerl.schedules.resampling import MAX_BATCHES
from scalerl.tokens.symbols import END_THINK_ID, EOS_ID


class Drawn:
    """A task whose answers are right one time in four, whatever they say: a third of the groups of four have none."""

    def __init__(self, task):
        self.train, self.rng, self.num_judges = task.train, random.Random(0), 1

    def judge(self, prompt, tokens):
        return Judgement("right" if self.rng.random() < 0.25 else "wrong")


def steps_of(recipe, num_steps):
    cluster = make_cluster(recipe, random_policy(recipe))
    cluster.judge.task = Drawn(cluster.task)
    return cluster, [SCHEDULES[recipe.off_policy.type](cluster) for _ in range(num_steps)]


@pytest.mark.parametrize(
    ("schedule", "k", "speed"),
    [("pipeline", 1, "slow trainers"), ("pipeline", 4, "slow generators"), ("ppo_off_policy", 3, "balanced")],
)
def test_every_batch_is_full_of_groups_with_variance(schedule, k, speed):
    _, plain = steps_of(recipe_of(schedule, k, speed, zero_variance="drop"), 9)
    assert sum(group.zero_variance for step in plain for group in step.groups) > 6
    cluster, steps = steps_of(recipe_of(schedule, k, speed, zero_variance="resample"), 9)
    for step in steps:
        assert len(step.groups) == 4
        assert not any(group.zero_variance for group in step.groups)
        assert step.update.metrics["survivors"] == 4
    in_time = k if schedule == "pipeline" else k - 1
    assert all(0 <= step.version - group.start_version <= in_time for step in steps for group in step.groups)
    waiting = len(cluster.assembling) + len(cluster.ready) + sum(len(batch) for batch in cluster.pending)
    assert cluster.next_group - 36 - waiting > 6


@pytest.mark.parametrize(("schedule", "k"), [("pipeline", 2), ("ppo_off_policy", 2)])
def test_a_policy_with_nothing_to_learn_throws_ten_batches_away_and_then_steps_on(schedule, k):
    # Every answer is the same and wrong: no group ever has variance.
    recipe = recipe_of(schedule, k, "balanced", zero_variance="resample")
    cluster = make_cluster(recipe, fixed_policy(recipe, {END_THINK_ID: 20.0, EOS_ID: 20.0}))
    steps = [SCHEDULES[schedule](cluster) for _ in range(4)]
    assert all(step.update.metrics["skipped"] and step.update.metrics["survivors"] == 0 for step in steps)
    assert all(len(step.groups) == recipe.batch.prompts for step in steps)
    trained = len(steps) * recipe.batch.prompts
    waiting = len(cluster.assembling) + len(cluster.ready) + sum(len(batch) for batch in cluster.pending)
    assert cluster.next_group - trained - waiting == MAX_BATCHES * trained


def test_a_resampling_run_goes_on_exactly_where_its_state_was_taken():
    recipe = recipe_of("pipeline", 2, "balanced", zero_variance="resample")
    cluster, _ = steps_of(recipe, 3)
    again = make_cluster(recipe, random_policy(recipe))
    again.load_state_dict(copy.deepcopy(cluster.state_dict()))
    again.judge.task = copy.deepcopy(cluster.judge.task)
    for _ in range(3):
        ours, theirs = (SCHEDULES["pipeline"](one) for one in (cluster, again))
        assert ours.update == theirs.update
        assert [group.prompt.id for group in ours.groups] == [group.prompt.id for group in theirs.groups]
