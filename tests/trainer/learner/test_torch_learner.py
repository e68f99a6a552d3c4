"""One optimiser step on a real policy: its gradient, its micro-batches, and the steps it must not take."""

import math

import pytest
import torch
from trainer.learner_cases import assert_same_gradients, gradients, random_groups
from trainer.reference_loss import reference
from trainer.tiny import make_group, random_policy, tiny_recipe

from scalerl.learner import batch_loss
from scalerl.learner.batch import make_batch
from scalerl.learner.batch_loss import rows_with_gradient
from scalerl.learner.learner import Diverged
from scalerl.learner.torch_learner import MAX_BAD_STEPS, TorchLearner
from scalerl.model.packing import padded_micro_batches
from scalerl.objective.advantages import Rewards, advantages
from scalerl.objective.running_statistics import RunningStatistics

LOSSES = [
    {"type": "cispo", "min_ratio": 0.3, "max_ratio": 1.5},
    {"type": "dapo"},
    {"type": "grpo"},
    {"type": "gspo", "clip_low": 0.1, "clip_high": 0.15},
]


def survivors(groups, recipe):
    """Groups, batch and advantages as `TorchLearner.step` makes them."""
    kept = [group for group in groups if recipe.zero_variance == "keep" or len(set(group.rewards)) > 1]
    advantage, _ = advantages(Rewards.of([group.rewards for group in kept]), recipe.advantage, RunningStatistics())
    return kept, make_batch(kept), advantage.reshape(-1, 1).float()


@pytest.mark.parametrize("loss", LOSSES, ids=[loss["type"] for loss in LOSSES])
@pytest.mark.parametrize("aggregation", ["prompt", "sample", "token"])
@pytest.mark.parametrize("zero_variance", ["drop", "keep"])
def test_loss_and_parameter_gradients_equal_the_loops(loss, aggregation, zero_variance):
    recipe = tiny_recipe(loss=loss, aggregation=aggregation, zero_variance=zero_variance)
    policy = random_policy(recipe)
    groups = random_groups(policy)

    kept, batch, advantage = survivors(groups, recipe)
    learner = TorchLearner(policy, recipe)
    metrics = learner.accumulate(batch, advantage)
    ours = gradients(policy)

    # The loops get the policy's log-probs as numbers, one unpadded sequence at a time; their gradient with respect to
    # these goes back through the same policy.
    policy.zero_grad()
    rows = [
        policy.token_logprobs(torch.tensor([[*rollout.prompt.tokens, *rollout.tokens.tolist()]]), 1.0)[0][0]
        for group in groups
        for rollout in group.rollouts
    ]
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    samples = [
        list(zip(row[len(r.prompt.tokens) :].tolist(), r.logprobs.tolist(), (~r.forced).tolist(), strict=True))
        for row, r in zip(rows, rollouts, strict=True)
    ]
    expected, moving = (
        reference(
            [samples[i : i + 3] for i in range(0, len(samples), 3)],
            [list(group.rewards) for group in groups],
            loss=recipe.loss.type,
            bounds=recipe.loss.model_dump(exclude={"type"}),
            aggregation=aggregation,
            normalisation=str(recipe.advantage),
            zero_variance=rule,
        )
        for rule in (zero_variance, "drop")
    )
    flat = [sample for prompt in expected.gradient for sample in prompt]
    surrogate = sum(
        (row[len(r.prompt.tokens) :] * torch.tensor(slope)).sum()
        for row, r, slope in zip(rows, rollouts, flat, strict=True)
    )
    surrogate.backward()

    assert len(kept) == (4 if zero_variance == "keep" else sum(len(set(g.rewards)) > 1 for g in groups))
    assert metrics["loss"] == pytest.approx(expected.loss, rel=1e-5, abs=1e-6)
    # Prompts without variance weigh in the loss, but what is seen of tokens is of those that move something.
    assert metrics["ratio_clipped"] == pytest.approx(moving.num_clipped / moving.num_tokens, abs=1e-12)
    assert 0 < moving.num_clipped < moving.num_tokens
    assert_same_gradients(ours, gradients(policy))


@pytest.mark.parametrize("loss", LOSSES, ids=[loss["type"] for loss in LOSSES])
@pytest.mark.parametrize("aggregation", ["prompt", "sample", "token"])
def test_micro_batches_add_up_to_the_whole_batch(loss, aggregation):
    results = []
    for micro_batch_tokens in (1, 20, 37, 10**6):
        optimiser = {"micro_batch_tokens": micro_batch_tokens}
        recipe = tiny_recipe(loss=loss, aggregation=aggregation, optimiser=optimiser)
        policy = random_policy(recipe)
        _, batch, advantage = survivors(random_groups(policy), recipe)
        metrics = TorchLearner(policy, recipe).accumulate(batch, advantage)
        num_passes = len(padded_micro_batches(batch.length_B, micro_batch_tokens))
        results.append((num_passes, metrics, gradients(policy)))
    *split, (one, whole_metrics, whole) = results
    assert one == 1
    assert [num_passes > 1 for num_passes, _, _ in split] == [True] * 3
    for _, metrics, gradient in split:
        assert_same_gradients(gradient, whole)
        assert metrics == pytest.approx(whole_metrics, rel=1e-5, abs=1e-6)


def test_micro_batches_hold_every_row_once_and_keep_to_the_limit():
    lengths = torch.tensor([5, 30, 7, 12, 12, 1])
    batches = padded_micro_batches(lengths, max_tokens=24)
    assert [rows.tolist() for rows in batches] == [[1], [3, 4], [2, 0, 5]]


def test_entropy_and_mismatch_are_means_over_own_tokens():
    recipe = tiny_recipe()
    policy = random_policy(recipe)
    tokens, logprobs = [[5, 9, 1], [7, 1]], [[-1.0, 0.0, -2.0], [-3.0, -4.0]]
    group = make_group("p", tokens, logprobs, [1.0, -1.0], forced=[[False, True, False], [False, False]])
    metrics = TorchLearner(policy, recipe).accumulate(make_batch([group]), torch.tensor([[1.0], [-1.0]]))
    entropy, gap = [], []
    for row, behaviour, own in zip(tokens, logprobs, [[0, 2], [0, 1]], strict=True):
        logits = policy.logits(policy.hidden(torch.tensor([[*group.prompt.tokens, *row]])))[0].double()
        for t in own:
            distribution = logits[len(group.prompt.tokens) + t - 1].softmax(-1).tolist()
            entropy.append(-math.fsum(p * math.log(p) for p in distribution if p > 0))
            gap.append(abs(math.log(distribution[row[t]]) - behaviour[t]))
    assert metrics["entropy"] == pytest.approx(math.fsum(entropy) / 4, rel=1e-5)
    assert metrics["mismatch"] == pytest.approx(math.fsum(gap) / 4, rel=1e-5)


def test_garbage_behind_forced_tokens_does_not_reach_the_gradient():
    recipe = tiny_recipe()
    policy = random_policy(recipe)
    gradient = []
    for rubbish in (0.0, math.nan, math.inf):
        group = make_group(
            "p", [[5, 9, 1], [7, 1]], [[-1.0, rubbish, -2.0], [-3.0, -4.0]], [1.0, -1.0],
            forced=[[False, True, False], [False, False]],
        )  # fmt: skip
        policy.zero_grad()
        metrics = TorchLearner(policy, recipe).accumulate(make_batch([group]), torch.tensor([[1.0], [-1.0]]))
        assert all(math.isfinite(value) for value in metrics.values())
        gradient.append(gradients(policy))
    assert_same_gradients(gradient[1], gradient[0])
    assert_same_gradients(gradient[2], gradient[0])


def test_temperature_is_that_of_the_generator():
    recipe = tiny_recipe(generation={"temperature": 0.5})
    policy = random_policy(recipe)
    tokens = torch.tensor([[6, 4, 7, 2, 5, 1]])
    logprobs, _ = policy.token_logprobs(tokens, 0.5)
    group = make_group(
        "p", [[5, 1], [5, 1]], [logprobs[0, 4:].tolist()] * 2, [1.0, -1.0], tokens_of_prompt=(6, 4, 7, 2)
    )
    metrics = TorchLearner(policy, recipe).accumulate(make_batch([group]), torch.tensor([[1.0], [-1.0]]))
    assert metrics["mismatch"] == pytest.approx(0, abs=1e-6)


# --- whole steps ----------------------------------------------------------------------------------------------------


def weights(policy):
    return {name: tensor.clone() for name, tensor in policy.state_dict().items()}


def unchanged(policy, before):
    return all(torch.equal(tensor, before[name]) for name, tensor in policy.state_dict().items())


def bad_group():
    """A NaN in a token the policy chose."""
    return make_group("bad", [[5, 1], [7, 1]], [[-1.0, math.nan], [-1.0, -1.0]], [1.0, -1.0])


def good_group():
    return make_group("good", [[5, 1], [7, 1]], [[-1.0, -1.0], [-1.0, -1.0]], [1.0, -1.0])


def even_group():
    return make_group("even", [[5, 1], [7, 1]], [[-1.0, -1.0], [-1.0, -1.0]], [1.0, 1.0])


def test_a_step_moves_the_weights_and_the_version():
    recipe = tiny_recipe()
    policy = random_policy(recipe)
    learner, before = TorchLearner(policy, recipe), weights(policy)
    update = learner.step([good_group(), even_group()])
    assert not unchanged(policy, before)
    assert learner.version == 1
    assert (update.metrics["survivors"], update.metrics["skipped"]) == (1, False)
    # Only the survivor is trained on: two rows of five prompt and two answer tokens; 7 x 8 / 2 positions each.
    assert (update.trained_tokens, update.context_tokens) == (14, 56)


def test_the_first_adam_step_is_a_step_of_the_learning_rate_against_the_sign_of_the_gradient():
    recipe = tiny_recipe(optimiser={"learning_rate": 1e-3, "warmup_steps": 4, "weight_decay": 0.0})
    policy = random_policy(recipe)
    learner, before = TorchLearner(policy, recipe), weights(policy)
    _, batch, advantage = survivors([good_group()], recipe)
    probe = random_policy(recipe)
    TorchLearner(probe, recipe).accumulate(batch, advantage)
    update = learner.step([good_group()])
    assert update.metrics["learning_rate"] == pytest.approx(1e-3 / 4)
    for name, parameter in probe.named_parameters():
        moved = policy.state_dict()[name] - before[name]
        sure = parameter.grad.abs() > 1e-6  # smaller gradients are rounding noise of either sign
        torch.testing.assert_close(moved[sure], -2.5e-4 * parameter.grad.sign()[sure], rtol=2e-3, atol=1e-7)


def test_gradients_are_scaled_down_to_the_norm():
    recipe = tiny_recipe(optimiser={"max_grad_norm": 1e-3})
    policy = random_policy(recipe)
    learner = TorchLearner(policy, recipe)
    update = learner.step([good_group()])
    norm = math.sqrt(sum(float(p.grad.double().square().sum()) for p in policy.parameters()))
    assert update.metrics["grad_norm"] > 1e-3
    assert norm == pytest.approx(1e-3, rel=1e-3)


def test_warm_up_is_linear_then_constant():
    recipe = tiny_recipe(optimiser={"learning_rate": 1e-3, "warmup_steps": 4})
    learner = TorchLearner(random_policy(recipe), recipe)
    rates = [learner.step([good_group()]).metrics["learning_rate"] for _ in range(6)]
    assert rates == pytest.approx([2.5e-4, 5e-4, 7.5e-4, 1e-3, 1e-3, 1e-3])


def test_without_a_survivor_the_step_is_skipped_and_the_version_advances():
    recipe = tiny_recipe()
    policy = random_policy(recipe)
    learner, before = TorchLearner(policy, recipe), weights(policy)
    update = learner.step([even_group(), even_group()])
    assert unchanged(policy, before)
    assert learner.version == 1
    assert (update.metrics["survivors"], update.metrics["skipped"], update.trained_tokens) == (0, True, 0)
    assert learner.bad_steps == 0


KEPT = {"zero_variance": "keep", "advantage": "prompt"}


@pytest.mark.parametrize("loss", ["cispo", "dapo", "gspo"])
def test_rollouts_without_an_advantage_are_not_computed_and_the_gradient_is_that_of_all(loss, monkeypatch):
    recipe = tiny_recipe(**KEPT, loss={"type": loss}, optimiser={"micro_batch_tokens": 40})
    results, computed = [], []
    scores_of = batch_loss.scores_of
    monkeypatch.setattr(
        batch_loss, "scores_of", lambda p, part, r: computed.append(len(part.length_B)) or scores_of(p, part, r)
    )
    for every in (False, True):
        policy = random_policy(recipe)
        learner, groups = TorchLearner(policy, recipe), random_groups(policy)
        batch = make_batch(groups)
        advantage = learner.advantages(groups, batch)
        if every:
            monkeypatch.setattr(batch_loss, "rows_with_gradient", lambda a, _: torch.arange(len(a)))
        computed.clear()
        metrics = learner.accumulate(batch, advantage)
        results.append((sum(computed), metrics["loss"], gradients(policy)))
    (few, loss_of_few, ours), (all_rows, loss_of_all, expected) = results
    flat = sum(len(group.rollouts) for group in groups if group.zero_variance)
    assert (few, all_rows) == (12 - flat, 12)
    assert flat > 0
    assert loss_of_few == pytest.approx(loss_of_all, rel=1e-5)
    assert_same_gradients(ours, expected)


@pytest.mark.parametrize("more", [{"entropy_bonus": 0.01}, {"kl": {"coefficient": 0.1}}])
def test_every_rollout_is_computed_where_the_loss_is_of_every_rollout(more):
    recipe = tiny_recipe(**KEPT, **more)
    advantage = torch.tensor([[0.0], [1.0], [0.0]])
    assert rows_with_gradient(advantage, recipe).tolist() == [0, 1, 2]


def test_a_step_without_any_advantage_is_a_step_of_gradient_0():
    recipe = tiny_recipe(**KEPT)
    assert rows_with_gradient(torch.zeros(3, 1), recipe).tolist() == [0, 1, 2]
    assert rows_with_gradient(torch.tensor([[0.0], [1.0], [math.nan]]), recipe).tolist() == [1, 2]


def test_kept_prompts_of_one_reward_have_no_gradient():
    recipe = tiny_recipe(zero_variance="keep")
    policy = random_policy(recipe)
    update = TorchLearner(policy, recipe).step([even_group(), even_group()])
    assert update.metrics["survivors"] == 2
    assert update.metrics["grad_norm"] == 0


def test_a_nan_in_an_own_token_skips_the_step_and_is_counted():
    recipe = tiny_recipe()
    policy = random_policy(recipe)
    learner, before = TorchLearner(policy, recipe), weights(policy)
    update = learner.step([good_group(), bad_group()])
    assert unchanged(policy, before)
    assert learner.version == 1
    assert learner.bad_steps == 1
    assert update.metrics["skipped"]
    # What cannot be written to the run log as a number is null, never NaN.
    assert all(value is None or math.isfinite(value) for value in update.metrics.values())
    assert update.metrics["loss"] is None


def test_a_good_step_after_a_bad_one_is_an_ordinary_step():
    recipe = tiny_recipe()
    policy, undisturbed = random_policy(recipe), random_policy(recipe)
    learner, other = TorchLearner(policy, recipe), TorchLearner(undisturbed, recipe)
    learner.step([bad_group()])
    learner.step([good_group()])
    other.version = 1
    other.step([good_group()])
    assert learner.bad_steps == 0
    assert unchanged(policy, undisturbed.state_dict())


def test_five_bad_steps_in_a_row_stop_the_run():
    recipe = tiny_recipe()
    learner = TorchLearner(random_policy(recipe), recipe)
    assert MAX_BAD_STEPS == 5
    for _ in range(4):
        learner.step([bad_group()])
    learner.step([good_group()])
    for _ in range(4):
        learner.step([bad_group()])
    with pytest.raises(Diverged, match="5 bad steps in a row"):
        learner.step([bad_group()])


def test_a_learner_goes_on_exactly_where_its_state_was_taken(tmp_path):
    recipe = tiny_recipe()
    learner = TorchLearner(random_policy(recipe), recipe)
    learner.step([good_group()])
    learner.step([bad_group()])
    torch.save(learner.state_dict(), tmp_path / "learner.pt")
    again = TorchLearner(random_policy(recipe, seed=9), recipe)
    again.load_state_dict(torch.load(tmp_path / "learner.pt"))
    for one in (learner, again):
        one.step([good_group()])
        one.step([good_group()])
    assert (again.version, again.bad_steps) == (learner.version, learner.bad_steps) == (4, 0)
    assert unchanged(again.policy, learner.policy.state_dict())
