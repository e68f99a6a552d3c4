"""Every loss, aggregation, normalisation and zero-variance rule against the plain loops of `reference_loss`."""

import math

import pytest
import torch
from trainer.tiny import token_loss_of

from scalerl.recipe import Truncate
from scalerl.recipe.axes import Cispo, Dapo, Grpo, Gspo

SETTINGS = {
    "cispo": [Cispo(), Cispo(min_ratio=0.9, max_ratio=1.1)],
    "dapo": [Dapo(), Dapo(clip_low=0.02, clip_high=0.5), Dapo(delta=1.3)],
    "grpo": [Grpo(), Grpo(clip=0.05, delta=1.2)],
    "gspo": [Gspo(), Gspo(clip_low=0.3, clip_high=0.2)],
}


def one_row(ratios, advantage, settings, logprob=-1.0):
    """Loss, gradient and clip flags of one sample whose tokens have these ratios and this log-probability."""
    logprobs = torch.full((1, len(ratios)), logprob, dtype=torch.float64, requires_grad=True)
    behaviour = logprobs.detach() - torch.tensor([ratios], dtype=torch.float64).log()
    mask = torch.ones(1, len(ratios), dtype=torch.bool)
    loss, clipped = token_loss_of(settings, logprobs, behaviour, torch.tensor([[advantage]], dtype=torch.float64), mask)
    loss.sum().backward()
    return loss.detach()[0], logprobs.grad[0], clipped[0].tolist()


def close(result, expected):
    torch.testing.assert_close(result, torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "ratios", "advantage", "loss", "gradient", "clipped"),
    [
        # -min(rho, 5) x A x log pi with log pi = -1, for right and wrong answers alike.
        (Cispo(), [0.5, 3.0, 8.0], 2.0, [1, 6, 10], [-1, -6, -10], [False, False, True]),
        (Cispo(), [0.5, 8.0], -1.0, [-0.5, -5], [0.5, 5], [False, True]),
        (Cispo(min_ratio=0.5, max_ratio=2.0), [0.2, 1.0], 1.0, [0.5, 1], [-0.5, -1], [True, False]),
        # 1 + 0.26 = 1.26 caps rho = 2; rho = 0.5 lies under 0.8, but min() keeps the free branch; and the reverse.
        (Dapo(), [0.5, 1.0, 2.0], 3.0, [-1.5, -3, -3.78], [-1.5, -3, 0], [False, False, True]),
        (Dapo(), [0.5, 1.0, 2.0], -1.0, [0.8, 1, 2], [0, 1, 2], [True, False, False]),
        (Grpo(), [1.25, 1.15], 1.0, [-1.2, -1.15], [0, -1.15], [True, False]),
        # delta bounds the ratio of a wrong answer alone.
        (Dapo(delta=4.0), [0.9, 3.0, 5.0], -1.0, [0.9, 3, 4], [0.9, 3, 0], [False, False, True]),
        (Dapo(delta=4.0), [0.9, 5.0], 1.0, [-0.9, -1.26], [-0.9, 0], [False, True]),
        # sqrt(1.21 x 1) = 1.1 inside [0.7, 1.2]; each token's loss is -1.1, and each log-prob moves both by half.
        (Gspo(clip_low=0.3, clip_high=0.2), [1.21, 1.0], 1.0, [-1.1] * 2, [-1.1] * 2, [False] * 2),
        # sqrt(1.44 x 1.21) = 1.32 over 1.005, although neither of the tokens alone decides.
        (Gspo(), [1.44, 1.21], 2.0, [-2.01] * 2, [0] * 2, [True] * 2),
    ],
)
def test_losses_by_hand(settings, ratios, advantage, loss, gradient, clipped):
    found = one_row(ratios, advantage, settings)
    close(found[0], loss)
    close(found[1], gradient)
    assert found[2] == clipped


def test_a_delta_below_the_upper_clip_is_refused():
    with pytest.raises(ValueError, match=r"delta 1.1 must lie above the upper clip 1.2"):
        Grpo(delta=1.1)


def one_row_from(starts, behaviours, ratios, advantage, settings, correction):
    """Loss, gradient and clip flags of one sample: pi_start / pi_gen, and pi_train / pi_start, of its tokens."""
    start = torch.tensor([starts], dtype=torch.float64).log()
    behaviour = torch.tensor([behaviours], dtype=torch.float64).log()
    logprobs = (start + torch.tensor([ratios], dtype=torch.float64).log()).requires_grad_()
    mask = torch.ones(1, len(ratios), dtype=torch.bool)
    advantage_B1 = torch.tensor([[advantage]], dtype=torch.float64)
    loss, clipped = token_loss_of(settings, logprobs, behaviour, advantage_B1, mask, start, correction)
    loss.sum().backward()
    return loss.detach()[0], logprobs.grad[0], clipped[0].tolist()


@pytest.mark.parametrize("settings", [Grpo(), Dapo(clip_high=0.2)])
def test_truncated_weights_multiply_a_ratio_taken_from_the_start_of_the_round(settings):
    # pi_start / pi_gen = 0.5, 3 and 1; truncated at 2. pi_train / pi_start = 1.1, 1 and 1.5; clipped at 1.2. A = 2.
    loss, gradient, clipped = one_row_from([0.2, 0.6, 0.4], [0.4, 0.2, 0.4], [1.1, 1.0, 1.5], 2.0, settings, Truncate())
    close(loss, [-0.5 * 1.1 * 2, -2 * 1.0 * 2, -1 * 1.2 * 2])
    close(gradient, [-0.5 * 1.1 * 2, -2 * 1.0 * 2, 0.0])
    assert clipped == [False, False, True]


@pytest.mark.parametrize("name", list(SETTINGS))
def test_every_token_may_have_an_advantage_of_its_own(name):
    # On-policy the gradient of each token is minus its own advantage; GSPO's ratio is one for the sequence, so that its
    # tokens share the mean of their advantages.
    logprobs = torch.full((1, 4), -1.0, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False, True]])
    advantage = torch.tensor([[0.7, -0.2, math.nan, 1.0]], dtype=torch.float64)
    loss, _ = token_loss_of(SETTINGS[name][0], logprobs, logprobs.detach().clone(), advantage, mask)
    loss.sum().backward()
    close(logprobs.grad[0], [-0.5, -0.5, 0.0, -0.5] if name == "gspo" else [-0.7, 0.2, 0.0, -1.0])


@pytest.mark.parametrize("name", list(SETTINGS))
def test_on_policy_every_loss_has_the_plain_policy_gradient(name):
    _, gradient, clipped = one_row([1.0, 1.0], 0.7, SETTINGS[name][0])
    close(gradient, [-0.7, -0.7])
    assert clipped == [False, False]


@pytest.mark.parametrize("name", list(SETTINGS))
def test_a_nan_in_an_own_token_is_not_hidden(name):
    logprobs = torch.tensor([[-1.0, math.nan]], requires_grad=True)
    mask = torch.ones(1, 2, dtype=torch.bool)
    loss, _ = token_loss_of(SETTINGS[name][0], logprobs, torch.full((1, 2), -1.0), torch.tensor([[1.0]]), mask)
    assert not loss.sum().isfinite()
