"""Attention of a decode step, dense and fused, against its formula in float64, row by row."""

import numpy as np
import pytest
import torch

from scalerl.model.cached_attention import DenseStep, FusedStep

HEADS, SIZE, POSITIONS = 3, 8, 96
LENGTHS = [1, 32, 33, 2, 96, 63]


def made(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def expected(q, keys, values, k, v, lengths):
    """Softmax of q . k / sqrt(D) over a row's positions, the last of them the step's own token, times the values."""
    found = np.zeros((len(lengths), HEADS, SIZE))
    for row, length in enumerate(lengths):
        for head in range(HEADS):
            own_k = np.concatenate((keys[row, head, : length - 1], k[row, head][None])).astype(np.float64)
            own_v = np.concatenate((values[row, head, : length - 1], v[row, head][None])).astype(np.float64)
            score = own_k @ q[row, head].astype(np.float64) / np.sqrt(SIZE)
            weight = np.exp(score - score.max())
            found[row, head] = weight @ own_v / weight.sum()
    return found.reshape(len(lengths), -1)


@pytest.mark.parametrize("kind", ["dense", "fused"])
def test_attention_of_uneven_rows_is_the_softmax_over_their_own_positions(kind):
    n = len(LENGTHS)
    keys, values = made(n, HEADS, POSITIONS, SIZE, seed=0), made(n, HEADS, POSITIONS, SIZE, seed=1)
    q, k, v = (made(n, HEADS, SIZE, seed=seed) for seed in (2, 3, 4))
    position = torch.tensor(LENGTHS) - 1
    spare = 2  # rows of the cache that are not in use
    layer = torch.full((n + spare, HEADS, 2, POSITIONS, SIZE), 7.0)
    layer[:n] = torch.stack((keys, values), dim=2)
    dense = FusedStep if kind == "fused" else DenseStep
    step = dense(position, max(LENGTHS), layer, torch.float32)
    step.write(layer, k, v)
    found = step.attend(layer, q)
    wanted = expected(q.numpy(), keys.numpy(), values.numpy(), k.numpy(), v.numpy(), LENGTHS)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=0, atol=2e-6)
    assert (layer[n:] == 7.0).all()


def test_half_precision_rounds_alike_in_the_dense_and_the_fused_step():
    n = len(LENGTHS)
    layer = made(n, HEADS, 2, POSITIONS, SIZE, seed=0).bfloat16()
    q, k, v = (made(n, HEADS, SIZE, seed=seed).bfloat16().float() for seed in (2, 3, 4))
    found = []
    for kind in (DenseStep, FusedStep):
        step = kind(torch.tensor(LENGTHS) - 1, max(LENGTHS), layer, torch.bfloat16)
        step.write(layer, k, v)
        found.append(step.attend(layer, q))
    torch.testing.assert_close(*found, rtol=0, atol=2**-8)  # the result's own rounding, of numbers near 1
