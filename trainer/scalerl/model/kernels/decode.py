"""One layer of a decode step of the built-in policy on a CPU, for new tokens of any rows of the cache.

    h = x + W_out attention(rotated q, rotated k, v)        q, k, v = W_qkv norm(x)
    x' = h + W_down (silu(gate) up)                         gate, up = W_gate_up norm(h)

Every token attends to the cached positions of its own row up to its own. Blocks of `LANES` tokens are computed one
after the other, and within a layer a block's keys and values are written before its attention; a row's tokens
therefore come in the order of their positions. Prompts come first. What they share is copied to their other rows before
the first decoded token. Every row thus has all of its keys and values, but rows of one prompt read one copy of it, so
that more of a step's reads stay in the processor's caches.

With `rounds`, both factors of every product are rounded to BF16 and products are summed in float32, as on tensor cores:
activations before each matrix, queries, keys and values after rotation, weights of attention before normalisation. The
caller rounds the matrices.
"""

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from scalerl.model.kernels.compiled import kernel
from scalerl.model.kernels.rows import (
    LANES,
    ONE,
    ZERO,
    Array,
    add,
    bfloat16,
    exp,
    norm,
    rotate,
    round_factors,
    silu_product,
    transpose,
)
from scalerl.model.kernels.step_tokens import Indices

Cache = NDArray[np.float32] | NDArray[np.uint16]
"""Keys and values, in float32 or as the bits of BF16."""
VALUES_AT_ONCE = 4
"""Positions whose values are added at once."""


def cached(number) -> np.float32:
    """A number of the cache."""
    raise NotImplementedError("compiled code only")


@overload(cached)
def _cached(number):
    if number == types.float32:
        return lambda number: number
    return lambda number: np.uint32(np.uint32(number) << np.uint32(16)).view(np.float32)


def stored(number, cache) -> np.float32 | np.uint16:
    """A number as the cache holds it."""
    raise NotImplementedError("compiled code only")


@overload(stored)
def _stored(number, cache):
    if cache.dtype == types.float32:
        return lambda number, cache: number
    return lambda number, cache: np.uint16(np.float32(number).view(np.uint32) >> np.uint32(16))


@kernel
def embed(
    embedding: Array, token_BR: Indices, position_BR: Indices, turns: Array, x_BHR: Array, cos_BPR: Array,
    sin_BPR: Array,
) -> None:  # fmt: skip
    """Embeddings of all tokens, and cosine and sine of their rotations from `turns` [positions, D / 2, 2]."""
    for b in range(len(x_BHR)):
        for r in range(LANES):
            token, position = token_BR[b, r], position_BR[b, r]
            for h in range(embedding.shape[1]):
                x_BHR[b, h, r] = embedding[token, h]
            for p in range(turns.shape[1]):
                cos_BPR[b, p, r] = turns[position, p, 0]
                sin_BPR[b, p, r] = turns[position, p, 1]


@kernel
def decode_layer(
    x_BHR: Array, row_BR: Indices, position_BR: Indices, source_BR: Indices, shared_BR: Indices, prompt_blocks: int,
    copies: Indices, cos_BPR: Array, sin_BPR: Array, attention_norm_H: Array, qkv: Array, out: Array,
    mlp_norm_H: Array, gate_up: Array, down: Array, eps: np.float32, cache: Cache, is_last: bool, rounds: bool,
) -> None:  # fmt: skip
    """Replace the hidden states of all tokens by those after the layer, and cache their keys and values.

    Lanes without a token have row -1. Row `source` has the same first `shared` positions. `copies` is [:, 3]: source
    row, target row, number of positions. `cache` is [rows, heads, 2, positions, D]. Nothing reads what the last layer
    makes of a prompt.
    """
    hidden, width = len(attention_norm_H), down.shape[1]
    heads, positions, size = cache.shape[1], cache.shape[3], cache.shape[4]
    normed_HR = np.empty((hidden, LANES), np.float32)
    qkv_NR, qkv_RN = np.empty((3 * hidden, LANES), np.float32), np.empty((LANES, 3 * hidden), np.float32)
    attended_RH, attended_HR = np.zeros((LANES, hidden), np.float32), np.empty((hidden, LANES), np.float32)
    gate_up_MR, inner_IR = np.empty((2 * width, LANES), np.float32), np.empty((width, LANES), np.float32)
    weights = np.empty(positions, np.float32)
    for b in range(len(x_BHR)):
        x_HR = x_BHR[b]
        if b == prompt_blocks:
            for c in range(len(copies)):
                copy_row(cache[copies[c, 0]], cache[copies[c, 1]], copies[c, 2])
        norm(x_HR, attention_norm_H, eps, normed_HR)
        if rounds:
            round_factors(normed_HR, normed_HR)
        np.dot(qkv, normed_HR, qkv_NR)
        for head in range(heads):
            start = 3 * head * size
            rotate(qkv_NR[start : start + size], cos_BPR[b], sin_BPR[b])
            rotate(qkv_NR[start + size : start + 2 * size], cos_BPR[b], sin_BPR[b])
        if rounds:
            round_factors(qkv_NR, qkv_NR)
        transpose(qkv_NR, qkv_RN)
        for r in range(LANES):
            row, position = row_BR[b, r], position_BR[b, r]
            if row >= 0:
                for head in range(heads):
                    start = (3 * head + 1) * size
                    for d in range(size):
                        cache[row, head, 0, position, d] = stored(qkv_RN[r, start + d], cache)
                        cache[row, head, 1, position, d] = stored(qkv_RN[r, start + size + d], cache)
        if is_last and b < prompt_blocks:
            continue
        for r in range(LANES):
            row, position = row_BR[b, r], position_BR[b, r]
            if row >= 0:
                for head in range(heads):
                    query_D = qkv_RN[r, 3 * head * size : (3 * head + 1) * size]
                    prompt, own = cache[source_BR[b, r], head], cache[row, head]
                    shared, length = shared_BR[b, r], position + 1
                    attend_one(query_D, prompt, shared, own, length, weights, rounds, attended_RH[r], head * size)
        transpose(attended_RH, attended_HR)
        if rounds:
            round_factors(attended_HR, attended_HR)
        np.dot(out, attended_HR, normed_HR)
        add(x_HR, normed_HR)
        norm(x_HR, mlp_norm_H, eps, normed_HR)
        if rounds:
            round_factors(normed_HR, normed_HR)
        np.dot(gate_up, normed_HR, gate_up_MR)
        silu_product(gate_up_MR, inner_IR)
        if rounds:
            round_factors(inner_IR, inner_IR)
        np.dot(down, inner_IR, normed_HR)
        add(x_HR, normed_HR)


@kernel
def copy_row(source: Cache, target: Cache, length: int) -> None:
    """Copy the first positions of one row [heads, 2, positions, D] of the cache to another."""
    for head in range(source.shape[0]):
        for which in range(2):
            read, written = source[head, which], target[head, which]
            for t in range(length):
                for d in range(source.shape[3]):
                    written[t, d] = read[t, d]


@kernel
def attend_one(
    query_D: Array, prompt: Cache, shared: int, own: Cache, length: int, weights: Array, rounds: bool, y_H: Array,
    start: int,
) -> None:  # fmt: skip
    """Attention of one query to the first `length` keys and values, into D numbers of y from `start`.

    sum_t w_t v_t / sum_t w_t, with w_t = e^(s_t - max s) and s_t = q . k_t / sqrt(D).

    `prompt` and `own` are [2, positions, D] and equal in the first `shared` positions. Whole `VALUES_AT_ONCE` of
    these are read from `prompt`, so that sums do not depend on where a position is read.
    """
    size = len(query_D)
    split = min(shared, length) // VALUES_AT_ONCE * VALUES_AT_ONCE
    scale = ONE / np.sqrt(np.float32(size))
    largest = np.float32(-np.inf)
    for part in range(2):
        keys = prompt[0] if part == 0 else own[0]
        for t in range(0 if part == 0 else split, split if part == 0 else length):
            score = ZERO
            for d in range(size):
                score += query_D[d] * cached(keys[t, d])
            weights[t] = score * scale
            if not weights[t] <= largest:
                largest = weights[t]
    total = ZERO
    for t in range(length):
        weights[t] = exp(weights[t] - largest)
        total += weights[t]
    if rounds:
        for t in range(length):
            weights[t] = bfloat16(weights[t])
    for d in range(size):
        y_H[start + d] = ZERO
    whole = length // VALUES_AT_ONCE * VALUES_AT_ONCE
    for part in range(2):
        values = prompt[1] if part == 0 else own[1]
        for t in range(0 if part == 0 else split, split if part == 0 else whole, VALUES_AT_ONCE):
            a, b, c, e = weights[t], weights[t + 1], weights[t + 2], weights[t + 3]
            for d in range(size):
                y_H[start + d] += (
                    a * cached(values[t, d])
                    + b * cached(values[t + 1, d])
                    + c * cached(values[t + 2, d])
                    + e * cached(values[t + 3, d])
                )
    last = own[1]
    for t in range(whole, length):
        for d in range(size):
            y_H[start + d] += weights[t] * cached(last[t, d])
    share = ONE / total
    for d in range(size):
        y_H[start + d] *= share


@kernel
def final_norm(x_BHR: Array, weight_H: Array, eps: np.float32, hidden_NH: Array) -> None:
    """The norm before the head, [tokens, hidden]."""
    normed_HR = np.empty(x_BHR.shape[1:], np.float32)
    for b in range(len(x_BHR)):
        norm(x_BHR[b], weight_H, eps, normed_HR)
        for r in range(min(LANES, len(hidden_NH) - b * LANES)):
            for h in range(len(weight_H)):
                hidden_NH[b * LANES + r, h] = normed_HR[h, r]
