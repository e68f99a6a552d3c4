"""One optimiser step on a real policy: its gradient, its micro-batches, and the steps it must not take."""

import math

import pytest
import torch
from trainer.learner_cases import assert_same_gradients, gradients, random_groups
from trainer.tiny import make_group, random_policy, tiny_recipe

from scalerl.errors import Diverged
from scalerl.learner import batch_loss
from scalerl.learner.batch import make_batch
from scalerl.learner.batch_loss import rows_with_gradient
from scalerl.learner.torch_learner import MAX_BAD_STEPS, TorchLearner
from scalerl.model.packing import padded_micro_batches


def test_micro_batches_hold_every_row_once_and_keep_to_the_limit():
    lengths = torch.tensor([5, 30, 7, 12, 12, 1])
    batches = padded_micro_batches(lengths, max_tokens=24)
    assert [rows.tolist() for rows in batches] == [[1], [3, 4], [2, 0, 5]]


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
    probe, batch = random_policy(recipe), make_batch([good_group()])
    other = TorchLearner(probe, recipe)
    other.accumulate(batch, other.advantages([good_group()], batch))
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
