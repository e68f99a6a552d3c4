"""Attention of single queries to cached keys and values: of one token of a prompt, or of `LANES` decoded tokens.

    y = sum_t w_t v_t / sum_t w_t        w_t = e^(s_t - max s)        s_t = q . k_t / sqrt(D)

With `rounds`, weights are rounded to BF16 before they meet the values.
"""

import numpy as np

from scalerl.model.kernels.cache import Cache, cached
from scalerl.model.kernels.compiled import kernel
from scalerl.model.kernels.lanes import LANES, POSITIONS_AT_ONCE, QUAD
from scalerl.model.kernels.rows import INFINITY, ONE, ZERO, Array, bfloat16, exp
from scalerl.model.kernels.step_tokens import Indices

WIDTH = LANES * QUAD


@kernel
def attend_one(query_D: Array, kv: Array, length: int, rounds: bool, w_T: Array, y_D: Array) -> None:
    """y of one query and the first `length` keys and values of `kv` [2, positions, D]."""
    size = len(query_D)
    scale = ONE / np.sqrt(np.float32(size))
    largest = -INFINITY
    for t in range(length):
        score = ZERO
        for d in range(size):
            score += query_D[d] * kv[0, t, d]
        w_T[t] = score * scale
        if not w_T[t] <= largest:
            largest = w_T[t]
    total = ZERO
    for t in range(length):
        w_T[t] = exp(w_T[t] - largest)
        total += w_T[t]
        if rounds:
            w_T[t] = bfloat16(w_T[t])
    for d in range(size):
        y_D[d] = ZERO
    for t in range(length):
        for d in range(size):
            y_D[d] += w_T[t] * kv[1, t, d]
    for d in range(size):
        y_D[d] /= total


@kernel
def attend_lanes(
    query_DR: Array, kv: Cache, position_R: Indices, rounds: bool, query_GW: Array, w_TR: Array, w_TW: Array,
    y_GW: Array, y_DR: Array,
) -> None:  # fmt: skip
    """y of each lane's query and the keys and values of its row up to its position.

    `kv` is [2, positions, G, W], with positions a multiple of `POSITIONS_AT_ONCE`.

    Where a row ends before others, its weights are 0; what `kv` holds there must be finite. No sum of a lane depends on
    where others end. The rest is room to work in, `query_GW` filled with zeros.
    """
    size, longest = len(query_DR), position_R.max() + 1
    for d in range(size):
        for r in range(LANES):
            query_GW[d // QUAD, r * QUAD + d % QUAD] = query_DR[d, r]
    total_R = np.zeros(LANES, np.float32)
    scores(query_GW, kv[0], longest, position_R, ONE / np.sqrt(np.float32(size)), w_TR)
    softmax_weights(w_TR[:longest], total_R)
    for t in range(longest):
        for r in range(LANES):
            w = bfloat16(w_TR[t, r]) if rounds else w_TR[t, r]
            for s in range(QUAD):
                w_TW[t, r * QUAD + s] = w
    for t in range(longest, -(-longest // POSITIONS_AT_ONCE) * POSITIONS_AT_ONCE):
        for i in range(WIDTH):
            w_TW[t, i] = ZERO
    weighted_sum(w_TW, kv[1], longest, y_GW)
    for d in range(size):
        for r in range(LANES):
            y_DR[d, r] = y_GW[d // QUAD, r * QUAD + d % QUAD] / total_R[r]


@kernel
def scores(query_GW: Array, key_TGW: Cache, longest: int, position_R: Indices, scale: np.float32, s_TR: Array) -> None:
    """s = q . k scale of each lane up to its position, and -inf behind it."""
    groups = len(query_GW)
    fours = groups // 4 * 4
    sums_W = np.empty(WIDTH, np.float32)
    for t in range(longest):
        key_GW = key_TGW[t]
        for i in range(WIDTH):
            sums_W[i] = ZERO
        for g in range(0, fours, 4):
            for i in range(WIDTH):
                sums_W[i] += (
                    query_GW[g, i] * cached(key_GW[g, i])
                    + query_GW[g + 1, i] * cached(key_GW[g + 1, i])
                    + query_GW[g + 2, i] * cached(key_GW[g + 2, i])
                    + query_GW[g + 3, i] * cached(key_GW[g + 3, i])
                )
        for g in range(fours, groups):
            for i in range(WIDTH):
                sums_W[i] += query_GW[g, i] * cached(key_GW[g, i])
        for r in range(LANES):
            i = r * QUAD
            score = (sums_W[i] + sums_W[i + 1] + sums_W[i + 2] + sums_W[i + 3]) * scale
            s_TR[t, r] = score if t <= position_R[r] else -INFINITY


@kernel
def softmax_weights(w_TR: Array, total_R: Array) -> None:
    """w = e^(s - max s), in place of the scores of each lane, and adds them to `total`."""
    largest_R = np.full(LANES, -INFINITY, np.float32)
    for t in range(len(w_TR)):
        for r in range(LANES):
            largest_R[r] = w_TR[t, r] if not w_TR[t, r] <= largest_R[r] else largest_R[r]
    for t in range(len(w_TR)):
        for r in range(LANES):
            w_TR[t, r] = exp(w_TR[t, r] - largest_R[r])
            total_R[r] += w_TR[t, r]


@kernel
def weighted_sum(w_TW: Array, value_TGW: Cache, longest: int, y_GW: Array) -> None:
    """y = sum_t w_t v_t of each lane."""
    for g in range(len(y_GW)):
        for i in range(WIDTH):
            y_GW[g, i] = ZERO
    for t in range(0, longest, POSITIONS_AT_ONCE):
        for g in range(len(y_GW)):
            for i in range(WIDTH):
                y_GW[g, i] += (
                    w_TW[t, i] * cached(value_TGW[t, g, i])
                    + w_TW[t + 1, i] * cached(value_TGW[t + 1, g, i])
                    + w_TW[t + 2, i] * cached(value_TGW[t + 2, g, i])
                    + w_TW[t + 3, i] * cached(value_TGW[t + 3, g, i])
                )
