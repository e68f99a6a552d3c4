"""The value network through the learner: what it is, what it learns, what a step with it does and costs."""

import math

import pytest
import torch
from pydantic import ValidationError
from trainer.learner_cases import assert_same_gradients, gradients, random_groups
from trainer.tiny import make_group, random_policy, tiny_recipe

from scalerl.learner.batch import Batch, make_batch
from scalerl.learner.critic import ValueModel
from scalerl.learner.torch_learner import TorchLearner
from scalerl.recipe import ResolvedRecipe

PPO = {
    "off_policy": {"type": "ppo_off_policy", "k": 2},
    "loss": {"type": "grpo"},
    "aggregation": "token",
    "critic": {"type": "value_network"},
    "zero_variance": "keep",
    "epochs": 2,
}


def recipe_of(**changes):
    optimiser = {"warmup_steps": 0, **changes.pop("optimiser", {})}
    if "critic" in changes:
        changes["critic"] = PPO["critic"] | changes["critic"]
    return tiny_recipe(**{**PPO, **changes}, optimiser=optimiser)


def case(recipe):
    """A learner whose critic has learned a little, groups, and their batch as it is trained on."""
    policy = random_policy(recipe)
    groups = random_groups(policy)
    learner = TorchLearner(policy, recipe)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        head = learner.critic.network.head
        head.copy_(torch.randn(head.shape, generator=generator) * 0.3)
    learner.critic.start_round()
    return learner, groups, learner.assign_credit(groups, learner.with_scores(make_batch(groups)))


def weights(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def same(module, before):
    return all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())


# --- the network ----------------------------------------------------------------------------------------------------


def values(network, tokens):
    """Of one row of tokens, whose every token is the policy's own."""
    row = torch.tensor([tokens])
    part = Batch(
        tokens_BT=row,
        mask_BT=row >= 0,
        host_mask_BT=row >= 0,
        behaviour_BT=torch.zeros(row.shape),
        group_B=torch.zeros(1, dtype=torch.long),
        length_B=torch.tensor([len(tokens)]),
        prompt_B=torch.ones(1, dtype=torch.long),
    )
    padded, packed = (network.values(part, part.packing(kind)) for kind in ("none", "sequences"))
    torch.testing.assert_close(packed, padded, rtol=1e-5, atol=1e-6)
    return padded


def test_a_new_critic_has_the_policys_body_and_sees_nothing_yet():
    policy = random_policy(tiny_recipe())
    network = ValueModel(policy, torch.float32)
    assert same(network.body, policy.state_dict())
    assert values(network, [6, 4, 7, 2, 5, 1]).abs().max() == 0


def test_a_value_is_of_the_state_before_its_token():
    network = ValueModel(random_policy(tiny_recipe()), torch.float32)
    torch.nn.init.normal_(network.head, generator=torch.Generator().manual_seed(0))
    one, other = (values(network, [6, 4, 7, last]) for last in (2, 30))
    assert torch.equal(one, other)
    assert one[0, 0] == 0
    by_hand = network.body.hidden(torch.tensor([[6, 4]]))[0, 1] @ network.head[0]
    assert one[0, 2].item() == pytest.approx(by_hand.item(), rel=1e-5)


def test_a_16_bit_critic_is_16_bit_throughout_and_near_the_32_bit_one():
    recipe = recipe_of(critic={"parameters": "bf16"})
    learner, groups, (batch, _) = case(recipe)
    exact, _, (batch_exact, _) = case(recipe_of())
    learner.step(groups)
    critic = learner.critic
    assert {p.dtype for p in critic.network.parameters()} == {torch.bfloat16}
    assert {p.grad.dtype for p in critic.network.parameters() if p.grad is not None} == {torch.bfloat16}
    assert {state["exp_avg"].dtype for state in critic.engine.adam.state.values()} == {torch.bfloat16}
    assert {p.dtype for p in learner.policy.parameters()} == {torch.float32}
    difference = (batch.values_BT - batch_exact.values_BT)[batch.mask_BT].abs()
    # BF16 has 8 bits: a unit value is known to 1/256, and a few roundings add up.
    assert 0 < difference.max() < 0.1
    assert exact.critic.network.head.dtype == torch.float32


# --- a step ---------------------------------------------------------------------------------------------------------


def test_a_step_with_a_critic_in_micro_batches_is_the_step_of_the_whole_batch():
    results = []
    for tokens in (1, 37, 10**6):
        learner, _, (batch, advantage) = case(recipe_of(optimiser={"micro_batch_tokens": tokens}))
        metrics = learner.accumulate(batch, advantage) | learner.critic.accumulate(batch)
        num_parts = len(batch.micro_batches(learner.recipe.packing, learner.recipe.optimiser.micro_batch_tokens))
        results.append((num_parts, advantage, metrics, gradients(learner.policy), gradients(learner.critic.network)))
    *split, (one, whole_advantage, whole_metrics, of_policy, of_critic) = results
    assert one == 1
    for num_parts, advantage, metrics, policy_gradient, critic_gradient in split:
        assert num_parts > 1
        torch.testing.assert_close(advantage, whole_advantage, rtol=1e-5, atol=1e-6)
        assert metrics == pytest.approx(whole_metrics, rel=1e-4, abs=1e-6)
        assert_same_gradients(policy_gradient, of_policy)
        assert_same_gradients(critic_gradient, of_critic)


def test_the_critics_gradient_is_that_of_the_mean_loss_over_own_tokens():
    learner, groups, (batch, _) = case(recipe_of(critic={"value_clip": None}, optimiser={"micro_batch_tokens": 20}))
    learner.critic.accumulate(batch)
    ours = gradients(learner.critic.network)
    network = learner.critic.network
    network.zero_grad()
    total, count = torch.zeros(()), 0
    rows = [rollout for group in groups for rollout in group.rollouts]
    for number, rollout in enumerate(rows):
        start = len(rollout.prompt.tokens)
        tokens = torch.tensor([[*rollout.prompt.tokens, *rollout.tokens.tolist()]])
        for t in (t for t, forced in enumerate(rollout.forced) if not forced):
            value = network.body.hidden(tokens)[0, start + t - 1] @ network.head[0]
            total = total + (value - batch.returns_BT[number, start + t]) ** 2 / 2
            count += 1
    (total / count).backward()
    assert_same_gradients(ours, gradients(network))


def test_a_kl_penalty_in_the_reward_is_taken_off_where_it_arises():
    # lambda and gamma 1: a return is all reward still to come, so neighbours differ by the penalty of one token.
    settings = {"critic": {"gae_lambda": 1.0}, "advantage": "none"}
    kl = {"coefficient": 0.5, "estimator": "k1", "where": "reward"}
    plain, groups, _ = case(recipe_of(**settings))
    learner, _, _ = case(recipe_of(**settings, kl=kl))
    learner.reference.policy.load_state_dict(random_policy(learner.recipe, seed=5).state_dict())
    batch = learner.with_scores(make_batch(groups))
    with_kl, _ = learner.assign_credit(groups, batch)
    without, _ = plain.assign_credit(groups, plain.with_scores(make_batch(groups)))
    penalty = 0.5 * (batch.behaviour_BT - batch.reference_BT) * batch.mask_BT
    assert penalty.abs().max() > 0.1
    to_come = penalty.flip(1).cumsum(1).flip(1) * batch.mask_BT
    torch.testing.assert_close(without.returns_BT - with_kl.returns_BT, to_come, rtol=1e-4, atol=1e-5)


def test_all_batches_of_a_round_get_their_values_from_the_critic_of_its_start():
    recipe = recipe_of(off_policy={"type": "ppo_off_policy", "k": 3}, epochs=1, optimiser={"learning_rate": 1e-2})
    learner, groups, _ = case(recipe)
    seen = []
    for _ in range(4):
        before = weights(learner.critic.network)
        learner.step(groups)
        seen.append((before, learner.with_scores(make_batch(groups)).values_BT))
    assert torch.equal(seen[0][1], seen[1][1])
    assert torch.equal(seen[0][1], seen[2][1])
    assert not torch.equal(seen[3][1], seen[0][1])
    assert same(learner.critic.start.network, seen[3][0])


def test_values_learn_what_the_reward_will_be():
    # The reward is a function of the first token; from the second on it is known.
    critic = {"learning_rate": 3e-3, "value_clip": None, "gae_lambda": 1.0}
    recipe = recipe_of(critic=critic, optimiser={"learning_rate": 1e-9}, epochs=1)
    policy = random_policy(recipe)
    tokens = [[5, 9, 1], [7, 9, 1], [5, 8, 1], [7, 8, 1]]
    groups = [make_group("p", tokens, [[-1.0] * 3] * 4, [1.0, -1.0, 1.0, -1.0])]
    learner = TorchLearner(policy, recipe)
    metrics = [learner.step(groups).metrics for _ in range(100)]
    assert metrics[0]["value_loss"] == pytest.approx(0.5)  # V = 0 and R = +-1
    assert metrics[-1]["value_loss"] < 0.2
    values = learner.critic.values(make_batch(groups))[:, 5:]
    # One token in three is chosen before anything is known: its value is the mean.
    assert values[:, 0].tolist() == pytest.approx([0.0] * 4, abs=0.15)
    assert values[:, 1].tolist() == pytest.approx([1.0, -1.0, 1.0, -1.0], abs=0.15)
    assert metrics[-1]["explained_variance"] == pytest.approx(2 / 3, abs=0.15)


def test_the_critic_has_a_learning_rate_of_its_own_under_the_policys_warm_up():
    recipe = recipe_of(critic={"learning_rate": 4e-3}, optimiser={"learning_rate": 1e-3, "warmup_steps": 4})
    learner, groups, _ = case(recipe)
    learner.step(groups)
    assert learner.engine.adam.param_groups[0]["lr"] == pytest.approx(1e-3 / 4)
    assert learner.critic.engine.adam.param_groups[0]["lr"] == pytest.approx(4e-3 / 4)
    plain, groups, _ = case(recipe_of(optimiser={"learning_rate": 1e-3}))
    plain.step(groups)
    assert plain.critic.engine.adam.param_groups[0]["lr"] == plain.engine.adam.param_groups[0]["lr"]


def test_a_critic_doubles_what_is_trained_and_adds_one_forward_pass():
    plain, policy = recipe_of(critic={"type": "none"}), random_policy(recipe_of())
    groups = random_groups(policy)
    without = TorchLearner(random_policy(plain), plain).step(groups)
    update = TorchLearner(policy, recipe_of()).step(groups)
    assert update.trained_tokens == 2 * without.trained_tokens
    assert update.context_tokens == 2 * without.context_tokens
    assert (without.scored_tokens, without.scored_context_tokens) == (0, 0)
    assert update.scored_tokens == without.trained_tokens / 2  # two epochs, one scoring
    assert update.scored_context_tokens == without.context_tokens / 2


# --- the guard ------------------------------------------------------------------------------------------------------


def bad_group(where):
    """A NaN in the log-probability of an own token, or in a reward."""
    first = [-1.0, math.nan if where == "log-probability" else -1.0]
    rewards = [math.nan if where == "reward" else 1.0, -1.0, -1.0]
    return make_group("bad", [[5, 1], [7, 1], [9, 1]], [first, [-1.0, -1.0], [-1.0, -1.0]], rewards)


@pytest.mark.parametrize("where", ["log-probability", "reward", "critic"])
def test_one_bad_batch_leaves_both_networks_and_all_moments_untouched(where):
    recipe = recipe_of(epochs=1)
    policy, undisturbed = random_policy(recipe), random_policy(recipe)
    groups = random_groups(policy)
    learner, other = TorchLearner(policy, recipe), TorchLearner(undisturbed, recipe)
    for one in (learner, other):
        one.step(groups)
    if where == "critic":
        saved = weights(learner.critic.network)
        learner.critic.network.get_parameter("body.norm").data.fill_(math.nan)
        update = learner.step(groups)
        learner.critic.network.load_state_dict(saved)
    else:
        update = learner.step([*groups, bad_group(where)])
    assert update.metrics["skipped"]
    assert learner.bad_steps == 1
    assert all(value is None or math.isfinite(value) for value in update.metrics.values())
    other.version = 2
    for one in (learner, other):
        one.step(groups)
    assert learner.bad_steps == 0
    assert same(policy, weights(undisturbed))
    assert same(learner.critic.network, weights(other.critic.network))


def test_a_nan_does_not_stay_in_running_statistics():
    recipe = tiny_recipe(advantage="running", kl={"coefficient": 0.1, "where": "reward"})
    learner = TorchLearner(random_policy(recipe), recipe)
    groups = random_groups(learner.policy)
    learner.step(groups)
    before = learner.statistics
    assert learner.step([*groups, bad_group("log-probability")]).metrics["skipped"]
    assert learner.statistics == before
    assert not learner.step(groups).metrics["skipped"]


# --- whole runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", ["fp32", "bf16"])
def test_a_learner_with_a_critic_goes_on_exactly_where_its_state_was_taken(tmp_path, parameters):
    recipe = recipe_of(
        critic={"parameters": parameters, "learning_rate": 2e-3}, off_policy={"type": "ppo_off_policy", "k": 3}
    )
    policy = random_policy(recipe)
    groups = random_groups(policy)
    learner = TorchLearner(policy, recipe)
    for _ in range(4):  # in the middle of a round
        learner.step(groups)
    torch.save(learner.state_dict(), tmp_path / "learner.pt")
    again = TorchLearner(random_policy(recipe, seed=9), recipe)
    again.load_state_dict(torch.load(tmp_path / "learner.pt"))
    for _ in range(3):
        assert learner.step(groups).metrics == again.step(groups).metrics
    assert same(again.policy, weights(learner.policy))
    assert same(again.critic.network, weights(learner.critic.network))


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("advantage", ["prompt", "running"])
def test_normalisations_of_a_groups_rewards_are_refused_with_a_critic(advantage):
    with pytest.raises(ValidationError, match=rf"advantage '{advantage}' .* use 'batch' or 'none'"):
        ResolvedRecipe.model_validate({**PPO, "advantage": advantage})
    ResolvedRecipe.model_validate({**PPO, "advantage": "none"})


def test_a_value_clip_is_refused_where_values_cannot_have_moved():
    with pytest.raises(ValidationError, match=r"critic.value_clip 0.5 has no effect .* value_clip: null"):
        ResolvedRecipe.model_validate({"critic": PPO["critic"]})
    for fits in ({"epochs": 2}, {"off_policy": {"type": "ppo_off_policy", "k": 2}}):
        ResolvedRecipe.model_validate({"critic": PPO["critic"], **fits})
    ResolvedRecipe.model_validate({"critic": {**PPO["critic"], "value_clip": None}})
