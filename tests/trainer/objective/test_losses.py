"""Every loss, aggregation, normalisation and zero-variance rule against the plain loops of `reference_loss`."""

import itertools
import math
import random

import pytest
import torch
from trainer.reference_loss import reference
from trainer.tiny import token_loss_of, weights_of

from scalerl.objective.advantages import Rewards, advantages
from scalerl.objective.running_statistics import RunningStatistics
from scalerl.recipe import Cispo, Dapo, Grpo, Gspo, Truncate

SETTINGS = {
    "cispo": [Cispo(), Cispo(min_ratio=0.9, max_ratio=1.1)],
    "dapo": [Dapo(), Dapo(clip_low=0.02, clip_high=0.5), Dapo(delta=1.3)],
    "grpo": [Grpo(), Grpo(clip=0.05, delta=1.2)],
    "gspo": [Gspo(), Gspo(clip_low=0.3, clip_high=0.2)],
}
CHOICES = list(
    itertools.product(
        [settings for group in SETTINGS.values() for settings in group],
        ["prompt", "sample", "token", "constant", "sum"],
        ["batch", "prompt", "none", "leave_one_out", "running"],
        ["drop", "keep"],
    )
)


def random_batch(seed):
    """Four prompts of three samples: uneven lengths, forced tokens, one sample all forced, one prompt of one reward."""
    rng = random.Random(seed)
    prompts = []
    for _ in range(4):
        samples = []
        for _ in range(3):
            logprobs = [-rng.expovariate(1) for _ in range(rng.randint(1, 7))]
            samples.append([(x, x + rng.gauss(0, 0.4), rng.random() > 0.2) for x in logprobs])
        prompts.append(samples)
    prompts[1][2] = [(x, y, False) for x, y, _ in prompts[1][2]]
    rewards = [[rng.choice([1.0, -1.0, 0.37]) for _ in range(3)] for _ in range(4)]
    rewards[0], rewards[2] = [1.0, -1.0, -1.0], [-1.0, -1.0, -1.0]
    return prompts, rewards


def as_tensors(prompts, rubbish):
    """Log-probs, behaviour and mask [B, T], two prompt positions in front; `rubbish` stands everywhere off the mask."""
    samples = [sample for prompt in prompts for sample in prompt]
    shape = (len(samples), 2 + max(len(sample) for sample in samples))
    logprobs, behaviour = torch.full((2, *shape), rubbish, dtype=torch.float64)
    mask = torch.zeros(shape, dtype=torch.bool)
    for row, sample in enumerate(samples):
        for t, (logprob, logprob_gen, own) in enumerate(sample, start=2):
            mask[row, t] = own
            if own:
                logprobs[row, t], behaviour[row, t] = logprob, logprob_gen
    return logprobs.requires_grad_(), behaviour, mask


def our_loss(settings, aggregation, normalisation, zero_variance, prompts, rewards, rubbish=0.0):
    """Loss, gradient [B, T] and clipped mask, put together as the learner does, on survivors only."""
    kept = [p for p, row in enumerate(rewards) if zero_variance == "keep" or len(set(row)) > 1]
    advantage_PG, _ = advantages(Rewards.of([rewards[p] for p in kept]), normalisation, RunningStatistics())
    logprobs, behaviour, mask = as_tensors([prompts[p] for p in kept], rubbish)
    group = torch.arange(len(kept)).repeat_interleave(3)
    loss, clipped = token_loss_of(settings, logprobs, behaviour, advantage_PG.reshape(-1, 1), mask)
    total = (loss * weights_of(aggregation, mask, group)).sum()
    total.backward()
    return total.item(), logprobs.grad, clipped, kept


def flat_gradient(gradient, kept, width):
    rows = [[0.0, 0.0, *sample] for p in kept for sample in gradient[p]]
    return torch.tensor([row + [0.0] * (width - len(row)) for row in rows], dtype=torch.float64)


@pytest.mark.parametrize(("settings", "aggregation", "normalisation", "zero_variance"), CHOICES)
def test_loss_gradient_and_clip_count_equal_the_loops(settings, aggregation, normalisation, zero_variance):
    bounds = settings.model_dump(exclude={"type"})
    for seed, rubbish in itertools.product(range(3), [0.0, math.nan, math.inf, -math.inf]):
        prompts, rewards = random_batch(seed)
        loss, gradient, clipped, kept = our_loss(
            settings, aggregation, normalisation, zero_variance, prompts, rewards, rubbish
        )
        expected = reference(
            prompts, rewards, loss=settings.type, bounds=bounds,
            aggregation=aggregation, normalisation=normalisation, zero_variance=zero_variance,
        )  # fmt: skip
        # The averages' weights are float32, the rest float64: seven digits.
        assert loss == pytest.approx(expected.loss, rel=1e-6, abs=1e-7)
        wanted = flat_gradient(expected.gradient, kept, gradient.shape[1])
        torch.testing.assert_close(gradient, wanted, rtol=1e-6, atol=1e-8)
        assert int(clipped.sum()) == expected.num_clipped
        assert (gradient[wanted == 0] == 0).all()


@pytest.mark.parametrize("name", ["dapo", "grpo", "gspo"])
@pytest.mark.parametrize("aggregation", ["prompt", "sample", "token", "constant", "sum"])
def test_the_loops_gradient_is_the_slope_of_the_loops_loss(name, aggregation):
    # CISPO is left out: its stop-gradient makes the gradient another function than the slope of the loss.
    prompts, rewards = random_batch(5)
    rules = {"aggregation": aggregation, "normalisation": "batch", "zero_variance": "drop"}
    for settings in SETTINGS[name]:
        bounds = settings.model_dump(exclude={"type"})
        analytic = reference(prompts, rewards, loss=name, bounds=bounds, **rules).gradient
        for p, i in itertools.product(range(4), range(3)):
            sample = prompts[p][i]
            for t, (logprob, behaviour, own) in enumerate(sample):
                ends = []
                for step in (1e-6, -1e-6):
                    sample[t] = (logprob + step, behaviour, own)
                    ends.append(reference(prompts, rewards, loss=name, bounds=bounds, **rules).loss)
                sample[t] = (logprob, behaviour, own)
                slope = (ends[0] - ends[1]) / 2e-6
                assert analytic[p][i][t] == pytest.approx(slope, rel=1e-6, abs=1e-9)


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


def test_cispo_caps_the_weight_and_keeps_the_gradient():
    # -min(rho, 5) x A x log pi with A = 2 and log pi = -1: weights 0.5, 3 and 5 (capped from 8).
    loss, gradient, clipped = one_row([0.5, 3.0, 8.0], 2.0, Cispo())
    close(loss, [1.0, 6.0, 10.0])
    close(gradient, [-1.0, -6.0, -10.0])
    assert clipped == [False, False, True]


def test_cispo_caps_alike_for_wrong_answers():
    loss, gradient, clipped = one_row([0.5, 8.0], -1.0, Cispo())
    close(loss, [-0.5, -5.0])
    close(gradient, [0.5, 5.0])
    assert clipped == [False, True]


def test_cispo_raises_weights_below_its_lower_bound():
    loss, gradient, clipped = one_row([0.2, 1.0], 1.0, Cispo(min_ratio=0.5, max_ratio=2.0))
    close(loss, [0.5, 1.0])
    close(gradient, [-0.5, -1.0])
    assert clipped == [True, False]


def test_dapo_clips_a_right_answer_only_from_above():
    # 1 + 0.26 = 1.26 caps rho = 2; rho = 0.5 lies under 0.8 but min() keeps the free branch.
    loss, gradient, clipped = one_row([0.5, 1.0, 2.0], 3.0, Dapo())
    close(loss, [-1.5, -3.0, -3.78])
    close(gradient, [-1.5, -3.0, 0.0])
    assert clipped == [False, False, True]


def test_dapo_clips_a_wrong_answer_only_from_below():
    loss, gradient, clipped = one_row([0.5, 1.0, 2.0], -1.0, Dapo())
    close(loss, [0.8, 1.0, 2.0])
    close(gradient, [0.0, 1.0, 2.0])
    assert clipped == [True, False, False]


def test_grpo_has_one_bound_for_both_sides():
    loss, gradient, clipped = one_row([1.25, 1.15], 1.0, Grpo())
    close(loss, [-1.2, -1.15])
    close(gradient, [0.0, -1.15])
    assert clipped == [True, False]


def test_delta_bounds_the_ratio_of_a_wrong_answer_alone():
    loss, gradient, clipped = one_row([0.9, 3.0, 5.0], -1.0, Dapo(delta=4.0))
    close(loss, [0.9, 3.0, 4.0])
    close(gradient, [0.9, 3.0, 0.0])
    assert clipped == [False, False, True]
    assert one_row([0.9, 5.0], 1.0, Dapo(delta=4.0))[0].tolist() == one_row([0.9, 5.0], 1.0, Dapo())[0].tolist()
    with pytest.raises(ValueError, match=r"delta 1.1 must lie above the upper clip 1.2"):
        Grpo(delta=1.1)


def test_gspo_shares_the_geometric_mean_of_the_ratios():
    # sqrt(1.21 x 1) = 1.1 inside [0.7, 1.2]; each token's loss is -1.1, and each log-prob moves both by half.
    loss, gradient, clipped = one_row([1.21, 1.0], 1.0, Gspo(clip_low=0.3, clip_high=0.2))
    close(loss, [-1.1, -1.1])
    close(gradient, [-1.1, -1.1])
    assert clipped == [False, False]


def test_gspo_clips_the_whole_sequence_at_once():
    # sqrt(1.44 x 1.21) = 1.32 over 1.005, although neither of the tokens alone decides.
    loss, gradient, clipped = one_row([1.44, 1.21], 2.0, Gspo())
    close(loss, [-2.01, -2.01])
    close(gradient, [0.0, 0.0])
    assert clipped == [True, True]


def test_gspo_averages_over_own_tokens_only():
    logprobs = torch.tensor([[-1.0, math.nan, -1.0]], dtype=torch.float64, requires_grad=True)
    behaviour = torch.tensor([[-1.0 - math.log(1.21), math.inf, -1.0]], dtype=torch.float64)
    mask = torch.tensor([[True, False, True]])
    loss, clipped = token_loss_of(
        Gspo(clip_low=0.3, clip_high=0.2), logprobs, behaviour, torch.tensor([[1.0]], dtype=torch.float64), mask
    )
    loss.sum().backward()
    close(loss.detach()[0], [-1.1, 0.0, -1.1])
    close(logprobs.grad[0], [-1.1, 0.0, -1.1])
    assert clipped.tolist() == [[False, False, False]]


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


def test_gspo_truncates_the_geometric_mean_of_the_weights():
    # sqrt(4 x 1) = 2 is truncated at 1.5; sqrt(1.21 x 1) = 1.1 is the ratio.
    settings, correction = Gspo(clip_low=0.3, clip_high=0.2), Truncate(of="geometric", high=1.5)
    loss, gradient, clipped = one_row_from([0.8, 0.3], [0.2, 0.3], [1.21, 1.0], 1.0, settings, correction)
    close(loss, [-1.65, -1.65])
    close(gradient, [-1.65, -1.65])
    assert clipped == [False, False]


@pytest.mark.parametrize("name", ["dapo", "grpo", "gspo"])
def test_truncated_weights_keep_garbage_off_the_mask_out(name):
    settings = SETTINGS[name][0]
    mask = torch.tensor([[True, False]])
    gradients = []
    for rubbish in (0.0, math.nan, math.inf):
        start, behaviour = torch.tensor([[-1.0, rubbish]]), torch.tensor([[-1.5, rubbish]])
        logprobs = torch.tensor([[-1.0, rubbish]], requires_grad=True)
        loss, _ = token_loss_of(settings, logprobs, behaviour, torch.tensor([[1.0]]), mask, start, Truncate())
        loss.sum().backward()
        gradients.append(logprobs.grad.tolist())
    assert gradients == [[[pytest.approx(-math.exp(0.5)), 0.0]]] * 3


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
