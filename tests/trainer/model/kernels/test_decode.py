"""Compiled attention of one query and copies within a cache, against loops in float64."""

import numpy as np
import pytest
import torch

from scalerl.model.kernels.decode import attend_one, copy_row

SIZE = 24


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def attended(query, keys, values, *, prompt=None, shared=0, rounds=False):
    """Attention to all keys but the last two, which lie beyond the query's position."""
    y, own = np.full(SIZE + 5, 7.0, np.float32), np.stack((keys, values))
    prompt = own if prompt is None else prompt
    attend_one(query, prompt, shared, own, len(keys) - 2, np.empty(len(keys), np.float32), rounds, y, 3)
    assert (y[:3] == 7).all()
    assert (y[3 + SIZE :] == 7).all()
    return y[3 : 3 + SIZE]


def expected(query, keys, values):
    score = [sum(float(a) * float(b) for a, b in zip(query, key, strict=True)) / SIZE**0.5 for key in keys[:-2]]
    weight = np.exp(np.array(score) - max(score))
    return weight @ values[:-2].astype(np.float64) / weight.sum()


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 31, 32, 33, 96])
def test_attention_is_the_softmax_over_the_positions_so_far(length):
    query, keys, values = drawn(SIZE), drawn(length + 2, SIZE, seed=1), drawn(length + 2, SIZE, seed=2)
    keys[-2:] = values[-2:] = np.nan  # whatever an earlier row has left there
    np.testing.assert_allclose(attended(query, keys, values), expected(query, keys, values), atol=2e-6)


def test_large_scores_neither_overflow_nor_vanish():
    keys, values = np.zeros((12, SIZE), np.float32), drawn(12, SIZE)
    keys[3], keys[5] = 1e4, -1e4
    np.testing.assert_allclose(attended(np.ones(SIZE, np.float32), keys, values), values[3], rtol=1e-6)


def test_a_score_that_is_not_a_number_makes_the_result_none_either():
    keys, values = drawn(8, SIZE), drawn(8, SIZE, seed=1)
    keys[4, 2] = np.nan
    assert np.isnan(attended(drawn(SIZE, seed=2), keys, values)).all()


def test_a_cache_in_bf16_gives_the_numbers_of_its_rounded_keys_and_values():
    query, keys, values = drawn(SIZE), *(torch.from_numpy(drawn(9, SIZE, seed=one)).bfloat16() for one in (1, 2))
    bits = (one.view(torch.int16).numpy().view(np.uint16) for one in (keys, values))
    np.testing.assert_array_equal(attended(query, *bits), attended(query, keys.float().numpy(), values.float().numpy()))


@pytest.mark.parametrize("shared", [0, 3, 4, 7, 8, 9, 13, 40])
def test_a_shared_prompt_gives_the_same_bits_wherever_it_is_read(shared):
    query, keys, values = drawn(SIZE), drawn(13, SIZE, seed=1), drawn(13, SIZE, seed=2)
    alone = attended(query, keys, values)
    prompt = np.stack((keys, values))
    np.testing.assert_array_equal(attended(query, keys, values, prompt=prompt, shared=shared), alone)
    prompt[:, shared:] = np.nan  # positions that are not shared
    np.testing.assert_array_equal(attended(query, keys, values, prompt=prompt, shared=shared), alone)


def test_a_shared_prompt_is_read_from_its_source():
    query, keys, values = drawn(SIZE), drawn(13, SIZE, seed=1), drawn(13, SIZE, seed=2)
    prompt, alone = np.stack((keys, values)), attended(query, keys, values)
    keys[:8] = values[:8] = np.nan
    np.testing.assert_array_equal(attended(query, keys, values, prompt=prompt, shared=9), alone)


def test_a_row_gets_the_first_positions_of_another():
    cache = drawn(3, 2, 2, 9, SIZE)
    before = cache.copy()
    copy_row(cache[0], cache[2], 5)
    np.testing.assert_array_equal(cache[2, :, :, :5], before[0, :, :, :5])
    before[2, :, :, :5] = cache[2, :, :, :5]
    np.testing.assert_array_equal(cache, before)
