"""Compiled attention of single queries, one by one and side by side, against a softmax in float64."""

import numpy as np
import pytest
import torch

from scalerl.model.kernels.attend import WIDTH, attend_lanes, attend_one
from scalerl.model.kernels.cache import as_numbers
from scalerl.model.kernels.lanes import LANES, POSITIONS_AT_ONCE, QUAD, side_by_side

SIZE = 22  # no multiple of QUAD


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def expected(query, kv, length):
    keys, values = kv[:, :length].astype(np.float64)
    score = keys @ query.astype(np.float64) / SIZE**0.5
    weight = np.exp(score - score.max())
    return weight @ values / weight.sum()


def alone(query, kv, length, *, rounds=False):
    y = np.empty(SIZE, np.float32)
    attend_one(query, kv, length, rounds, np.empty(kv.shape[1], np.float32), y)
    return y


def together(queries, kv, position, *, rounds=False, dtype=torch.float32):
    """Attention of queries [LANES, D] to rows [LANES, 2, positions, D], [LANES, D]."""
    block = as_numbers(side_by_side(torch.from_numpy(kv)[:, None].to(dtype)))[0, 0]
    groups, positions = -(-SIZE // QUAD), kv.shape[2]
    query_GW, y_GW = np.zeros((groups, WIDTH), np.float32), np.full((groups, WIDTH), np.nan, np.float32)
    w_TR, w_TW = (np.full((positions, width), np.nan, np.float32) for width in (LANES, WIDTH))
    y = np.empty((SIZE, LANES), np.float32)
    attend_lanes(np.ascontiguousarray(queries.T), block, position, rounds, query_GW, w_TR, w_TW, y_GW, y)
    return y.T


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 31, 32, 33, 96])
def test_one_query_sees_the_positions_so_far(length):
    query, kv = drawn(SIZE), drawn(2, length + 2, SIZE, seed=1)
    kv[:, -2:] = np.nan  # whatever an earlier row has left there
    np.testing.assert_allclose(alone(query, kv, length), expected(query, kv, length), atol=2e-6)


@pytest.mark.parametrize("longest", [1, 4, 5, 30])
def test_each_lane_sees_the_positions_of_its_row_so_far(longest):
    positions = -(-longest // POSITIONS_AT_ONCE) * POSITIONS_AT_ONCE
    queries, kv = drawn(LANES, SIZE), drawn(LANES, 2, positions, SIZE, seed=1)
    position = np.random.default_rng(2).integers(0, longest, LANES)
    position[7] = longest - 1
    for i, y in enumerate(together(queries, kv, position)):
        np.testing.assert_allclose(y, expected(queries[i], kv[i], position[i] + 1), atol=2e-6)


@pytest.mark.parametrize("attend", [alone, together])
def test_large_scores_neither_overflow_nor_vanish(attend):
    kv = np.zeros((2, 12, SIZE), np.float32)
    kv[0, 3], kv[0, 5], kv[1] = 1e4, -1e4, drawn(12, SIZE)
    ones = np.ones(SIZE, np.float32)
    if attend is alone:
        y = alone(ones, kv, 12)
    else:
        y = together(np.stack([ones] * LANES), np.stack([kv] * LANES), np.full(LANES, 11))[5]
    np.testing.assert_allclose(y, kv[1, 3], rtol=1e-6)


def test_a_score_that_is_not_a_number_makes_the_result_of_its_row_none_either():
    queries, kv, position = drawn(LANES, SIZE), drawn(LANES, 2, 8, SIZE, seed=1), np.full(LANES, 6)
    kv[3, 0, 4, 2] = np.nan
    assert np.isnan(alone(queries[3], kv[3], 7)).all()
    y = together(queries, kv, position)
    assert np.isnan(y[3]).all()
    assert np.isfinite(np.delete(y, 3, axis=0)).all()


def test_no_bit_of_a_row_depends_on_its_lane_or_on_the_rows_beside_it():
    queries, kv, position = drawn(LANES, SIZE), drawn(LANES, 2, 24, SIZE, seed=1), np.arange(LANES) % 9
    before = together(queries, kv, position)
    order = np.random.default_rng(3).permutation(LANES)
    queries, kv, moved = queries[order], kv[order], position[order]
    np.testing.assert_array_equal(together(queries, kv, moved), before[order])
    others = np.array([*range(5), *range(6, LANES)])
    queries[others], kv[others], moved[others] = drawn(31, SIZE, seed=4), drawn(31, 2, 24, SIZE, seed=5), 22
    kv[5, :, moved[5] + 1 :] = 1e30  # what an earlier row has left there
    np.testing.assert_array_equal(together(queries, kv, moved)[5], before[order][5])


def test_a_cache_in_bf16_gives_the_numbers_of_its_rounded_keys_and_values():
    queries, position = drawn(LANES, SIZE), np.arange(LANES) % 12
    rounded = torch.from_numpy(drawn(LANES, 2, 12, SIZE, seed=1)).bfloat16().float().numpy()
    half = together(queries, rounded, position, dtype=torch.bfloat16)
    np.testing.assert_array_equal(half, together(queries, rounded, position))


def test_rounded_weights_meet_the_values_and_exact_ones_are_summed():
    queries, kv = drawn(LANES, SIZE), drawn(LANES, 2, 12, SIZE, seed=1)
    found = together(queries, kv, np.full(LANES, 10), rounds=True)
    for query, row, y in zip(queries, kv, found, strict=True):
        score = row[0, :11].astype(np.float64) @ query.astype(np.float64) / SIZE**0.5
        weight = np.exp(score - score.max())
        rounded = torch.from_numpy(weight.astype(np.float32)).bfloat16().double().numpy()
        wanted = rounded @ row[1, :11].astype(np.float64) / weight.sum()
        # A weight next to the middle between two numbers of BF16 may be rounded to the other one in float64.
        np.testing.assert_allclose(y, wanted, atol=2e-3)
        assert np.abs(y - wanted).mean() < np.abs(weight @ row[1, :11] / weight.sum() - wanted).mean() / 5
        np.testing.assert_allclose(alone(query, row, 11, rounds=True), y, atol=2e-6)
