"""GAE and the value loss against numbers worked out by hand and against plain loops in float64."""

import math
import random
import statistics

import pytest
import torch

from scalerl.objective.gae import explained_variance, gae, standardised, value_loss, variances


def tensor(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def close(result, expected):
    torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-12)


def loop(rewards, values, own, gamma, gae_lambda):
    """A_t = sum_l (gamma lambda)^l delta_(t+l) over the own tokens of one rollout, summed term by term."""
    places = [t for t, mine in enumerate(own) if mine]
    deltas = []
    for i, t in enumerate(places):
        following = values[places[i + 1]] if i + 1 < len(places) else 0.0
        deltas.append(rewards[t] + gamma * following - values[t])
    result = [0.0] * len(values)
    for i, t in enumerate(places):
        result[t] = math.fsum((gamma * gae_lambda) ** (j - i) * deltas[j] for j in range(i, len(places)))
    return result


def random_rows(seed, num_rows=5, width=9, rubbish=0.0):
    """Rewards, values and mask of rollouts of uneven lengths with forced tokens; one has no token of its own."""
    rng = random.Random(seed)
    rewards, values, own = [], [], []
    for row in range(num_rows):
        length = rng.randint(3, width)
        mine = [1 < t < length and rng.random() > 0.3 and row != 3 for t in range(width)]
        own.append(mine)
        rewards.append([rng.gauss(0, 1) if x else rubbish for x in mine])
        values.append([rng.gauss(0, 1) if x else rubbish for x in mine])
    return rewards, values, own


def test_gae_worked_out_by_hand():
    # gamma 1/2, lambda 1/2. Own tokens 1 and 3; token 2 is forced. Reward 1 at the end.
    # delta_3 = 1 - 0.5 = 0.5; delta_1 = 0 + 0.5 x 0.5 - 0.25 = 0; A_1 = 0 + 0.25 x 0.5.
    result = gae(
        tensor([0, 0, 9, 1, 9]),
        tensor([7, 0.25, 7, 0.5, 7]),
        torch.tensor([[False, True, False, True, False]]),
        0.5,
        0.5,
    )
    close(result, tensor([0, 0.125, 0, 0.5, 0]))


@pytest.mark.parametrize(("gamma", "gae_lambda"), [(1.0, 0.95), (0.9, 0.7), (1.0, 1.0), (0.8, 0.0)])
@pytest.mark.parametrize("rubbish", [0.0, math.nan, math.inf])
def test_gae_equals_the_loop_whatever_stands_off_the_mask(gamma, gae_lambda, rubbish):
    for seed in range(5):
        rewards, values, own = random_rows(seed, rubbish=rubbish)
        result = gae(tensor(*rewards), tensor(*values), torch.tensor(own), gamma, gae_lambda)
        expected = [loop(*row, gamma, gae_lambda) for row in zip(rewards, values, own, strict=True)]
        close(result, tensor(*expected))


def test_standardised_advantages_have_mean_0_and_spread_1_over_own_tokens():
    rewards, _, own = random_rows(2, rubbish=math.nan)
    numbers = [
        x for row, mine in zip(rewards, own, strict=True) for x, own_token in zip(row, mine, strict=True) if own_token
    ]
    mean, sd = statistics.fmean(numbers), statistics.pstdev(numbers)
    expected = [
        [(x - mean) / (sd + 1e-6) if own_token else 0.0 for x, own_token in zip(row, mine, strict=True)]
        for row, mine in zip(rewards, own, strict=True)
    ]
    own_M = torch.tensor(numbers, dtype=torch.float64)
    close(standardised(tensor(*rewards), torch.tensor(own), own_M), tensor(*expected))


def test_a_clipped_value_loss_takes_the_worse_of_two():
    # V_old 0, clip 0.5. R = 1: V = 0.2 is free (0.64 / 2); V = 0.8 counts as 0.5 (0.25 / 2, no gradient).
    # R = -1: V = 0.8 went the wrong way, the free loss is the larger (3.24 / 2) and keeps its gradient.
    values = tensor([0.2, 0.8, 0.8]).requires_grad_()
    found = value_loss(values, tensor([0, 0, 0]), tensor([1, 1, -1]), torch.ones(1, 3, dtype=torch.bool), clip=0.5)
    loss, clipped = found.loss_BT, found.clipped_BT
    loss.sum().backward()
    close(loss.detach(), tensor([0.32, 0.125, 1.62]))
    close(values.grad, tensor([-0.8, 0, 1.8]))
    assert clipped.tolist() == [[False, True, False]]


@pytest.mark.parametrize("clip", [0.5, 0.1, None])
@pytest.mark.parametrize("rubbish", [0.0, math.nan])
def test_the_value_loss_equals_the_loop(clip, rubbish):
    rng = random.Random(4)
    rows = [
        [(rng.gauss(0, 1), rng.gauss(0, 1), rng.gauss(0, 1), rng.random() > 0.3) for _ in range(7)] for _ in range(4)
    ]
    values, old, returns = (tensor(*[[t[i] if t[3] else rubbish for t in row] for row in rows]) for i in range(3))
    mask = torch.tensor([[t[3] for t in row] for row in rows])
    values.requires_grad_()
    found = value_loss(values, old, returns, mask, clip=clip)
    loss, clipped = found.loss_BT, found.clipped_BT
    loss.sum().backward()
    for row, tokens in enumerate(rows):
        for t, (value, before, target, own) in enumerate(tokens):
            free, slope, is_clipped = (value - target) ** 2 / 2, value - target, False
            if clip is not None and (near := (before + min(clip, max(-clip, value - before)) - target) ** 2 / 2) > free:
                free, slope, is_clipped = near, 0.0, True
            assert float(loss.detach()[row, t]) == pytest.approx(free if own else 0.0, abs=1e-12)
            assert float(values.grad[row, t]) == pytest.approx(slope if own else 0.0, abs=1e-12)
            assert bool(clipped[row, t]) == (is_clipped and own)


def test_explained_variance_by_hand():
    def explained(values, returns):
        return explained_variance(*map(float, variances(torch.tensor(values), torch.tensor(returns))))

    returns = [1.0, -1.0, 0.0]  # variance 2/3
    assert explained(returns, returns) == 1
    assert explained([4.0, 4.0, 4.0], returns) == pytest.approx(0)
    assert explained([0.5, -0.5, 0.0], returns) == pytest.approx(0.75)
    assert explained(returns, [1.0, 1.0, 1.0]) is None
