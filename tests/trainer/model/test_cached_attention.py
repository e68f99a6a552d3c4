"""Attention of a decode step, dense and tiled, against its formula in float64, row by row."""

import numpy as np
import pytest
import torch
from trainer.tiny import random_policy, tiny_recipe

from scalerl.model.cached_attention import TILE, DenseStep, FusedStep, TiledStep, tiled, untiled

HEADS, SIZE, POSITIONS = 3, 8, 3 * TILE
LENGTHS = [1, TILE, TILE + 1, 2, 3 * TILE, 2 * TILE - 1]
"""One token, whole tiles, one more and one less."""


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


@pytest.mark.parametrize("kind", ["dense", "fused", "tiled"])
def test_attention_of_uneven_rows_is_the_softmax_over_their_own_positions(kind):
    n = len(LENGTHS)
    keys, values = made(n, HEADS, POSITIONS, SIZE, seed=0), made(n, HEADS, POSITIONS, SIZE, seed=1)
    q, k, v = (made(n, HEADS, SIZE, seed=seed) for seed in (2, 3, 4))
    position = torch.tensor(LENGTHS) - 1
    spare = 2  # rows of the cache that are not in use
    layer = torch.full((n + spare, HEADS, 2, POSITIONS, SIZE), 7.0)
    layer[:n] = torch.stack((tiled(keys) if kind == "tiled" else keys, values), dim=2)
    dense = FusedStep if kind == "fused" else DenseStep
    step = TiledStep(position, layer) if kind == "tiled" else dense(position, max(LENGTHS), layer, torch.float32)
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


def test_large_scores_neither_overflow_nor_vanish():
    layer = torch.zeros(1, 1, 2, TILE, 4)
    layer[0, 0, 1] = torch.arange(TILE * 4.0).view(TILE, 4)
    keys = torch.zeros(TILE, 4)
    keys[3], keys[5] = 1e4, -1e4
    layer[0, 0, 0] = tiled(keys)
    step = TiledStep(torch.tensor([9]), layer)
    step.write(layer, torch.zeros(1, 1, 4), torch.zeros(1, 1, 4))
    torch.testing.assert_close(step.attend(layer, torch.ones(1, 1, 4))[0], torch.arange(12.0, 16.0))  # row 3 alone


def test_keys_in_tiles_stand_number_by_number():
    keys = torch.arange(2 * TILE * 3.0).view(2 * TILE, 3)  # token t has 3 t, 3 t + 1, 3 t + 2
    flat = tiled(keys).flatten()
    assert flat[:4].tolist() == [0, 3, 6, 9]  # the first number of the first tokens
    assert flat[TILE : TILE + 3].tolist() == [1, 4, 7]
    assert flat[3 * TILE].item() == 3 * TILE  # the second tile begins with its first token
    assert torch.equal(untiled(tiled(keys)), keys)


def test_what_is_taken_from_a_cache_does_not_depend_on_how_keys_lie():
    """A checkpoint of keys and values is read whichever way the cache has them."""
    recipe = tiny_recipe(model={"hidden": 24, "layers": 2, "heads": 3, "mlp": 24})
    policy = random_policy(recipe)
    taken = made(2, 4, 3, 2, TILE + 5, 8, seed=0)
    kept = []
    for is_tiled in (True, False):
        cache = policy.new_cache(slots=4, positions=2 * TILE)
        assert cache._is_tiled
        cache._is_tiled = is_tiled
        cache.put(taken)
        kept.append(cache.kv[0].clone())
        assert torch.equal(cache.taken(4, TILE + 5), taken)
        assert torch.equal(cache.taken(3, 7), taken[:, :3, :, :, :7])
    assert not torch.equal(*kept)
