"""The loss of a batch stands by itself: an optimiser of another library can go backward from it."""

import pytest
import torch
from trainer.learner_cases import assert_same_gradients, gradients, random_groups
from trainer.reference_loss import reference
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


def tokens_of(policy, rollout):
    """`(log pi_train, log pi_gen, own)` of each token of an answer, by a pass over this rollout alone."""
    start = len(rollout.prompt.tokens)
    with torch.no_grad():
        row = policy.token_logprobs(torch.tensor([[*rollout.prompt.tokens, *rollout.tokens.tolist()]]), 1.0)[0][0]
    return list(zip(row[start:].tolist(), rollout.logprobs.tolist(), (~rollout.forced).tolist(), strict=True))


@pytest.mark.parametrize("tokens", [40, 10**6])
def test_the_losses_that_go_backward_add_up_to_that_of_the_loops(tokens):
    recipe, policy, groups, batch, advantage = case(optimiser={"micro_batch_tokens": tokens})
    parts = []
    columns = batch_loss(policy, batch, advantage, recipe, backward=lambda loss, _: parts.append(loss))
    expected = reference(
        [[tokens_of(policy, rollout) for rollout in group.rollouts] for group in groups],
        [list(group.rewards) for group in groups],
        loss="cispo",
        bounds=recipe.loss.model_dump(exclude={"type"}),
        aggregation="prompt",
        normalisation="batch",
        zero_variance="keep",
    )
    assert (len(parts) > 1) == (tokens == 40)
    assert float(sum(part.detach() for part in parts)) == pytest.approx(expected.loss, rel=1e-5)
    assert columns["loss"] == pytest.approx(expected.loss, rel=1e-5)


def test_the_caller_decides_what_goes_backward():
    results = []
    for scale in (1.0, 8.0):
        recipe, policy, _, batch, advantage = case()
        batch_loss(policy, batch, advantage, recipe, backward=lambda loss, _, scale=scale: (loss * scale).backward())
        results.append({name: gradient / scale for name, gradient in gradients(policy).items()})
    assert_same_gradients(*results)


def test_no_parameter_and_no_gradient_changes_where_nothing_goes_backward():
    recipe, policy, _, batch, advantage = case(entropy_bonus=0.01)
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    columns = batch_loss(policy, batch, advantage, recipe, backward=lambda *_: None)
    assert all(parameter.grad is None for parameter in policy.parameters())
    assert all(torch.equal(tensor, before[name]) for name, tensor in policy.state_dict().items())
    assert list(columns)[:6] == ["loss", "ratio_clipped", "entropy", "mismatch", "ratio_mean", "ess"]
    assert all(name.startswith(("mismatch_", "ess_")) for name in list(columns)[6:])
