"""The loss of a batch stands by itself: an optimiser of another library can go backward from it."""

import torch
from trainer.learner_cases import random_groups
from trainer.tiny import random_policy, tiny_recipe

from scalerl.learner.batch import make_batch
from scalerl.learner.batch_loss import batch_loss
from scalerl.objective.advantages import Rewards, advantages
from scalerl.objective.running_statistics import RunningStatistics


def case(**changes):
    recipe = tiny_recipe(zero_variance="keep", **changes)
    policy = random_policy(recipe)
    groups = random_groups(policy)
    advantage, _ = advantages(Rewards.of([group.rewards for group in groups]), recipe.advantage, RunningStatistics())
    return recipe, policy, groups, make_batch(groups), advantage.reshape(-1, 1).float()


def test_no_parameter_and_no_gradient_changes_where_nothing_goes_backward():
    recipe, policy, _, batch, advantage = case(entropy_bonus=0.01)
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    columns = batch_loss(policy, batch, advantage, recipe, backward=lambda *_: None)
    assert all(parameter.grad is None for parameter in policy.parameters())
    assert all(torch.equal(tensor, before[name]) for name, tensor in policy.state_dict().items())
    assert list(columns)[:6] == ["loss", "ratio_clipped", "entropy", "mismatch", "ratio_mean", "ess"]
    assert all(name.startswith(("mismatch_", "ess_")) for name in list(columns)[6:])
