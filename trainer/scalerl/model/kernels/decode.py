"""One layer of a decode step of the built-in policy on a CPU, for new tokens of any rows of the cache.

    h = x + W_out attention(rotated q, rotated k, v)        q, k, v = W_qkv norm(x)
    x' = h + W_down (silu(gate) up)                         gate, up = W_gate_up norm(h)

Every token attends to the cached positions of its own row up to its own. Blocks of `LANES` tokens are computed one
after the other. Prompts come first, a row's tokens in the order of their positions; what they share is then copied to
their other rows. The blocks behind them are those of the cache: one token of each of its rows.

With `rounds`, both factors of every product are rounded to BF16 and products are summed in float32, as on tensor cores:
activations before each matrix, queries, keys and values after rotation, weights of attention before normalisation. The
caller rounds the matrices.
"""

import numpy as np

from scalerl.model.kernels.attend import WIDTH, attend_lanes, attend_one
from scalerl.model.kernels.cache import Cache, copy_rows, read_row, write_lanes, write_row
from scalerl.model.kernels.compiled import kernel
from scalerl.model.kernels.lanes import LANES
from scalerl.model.kernels.rows import Array, add, norm, rotate, round_factors, silu_product, transpose
from scalerl.model.kernels.step_tokens import Indices


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
    x_BHR: Array, row_BR: Indices, position_BR: Indices, prompt_blocks: int, num_decoded: int, copies: Indices,
    cos_BPR: Array, sin_BPR: Array, attention_norm_H: Array, qkv: Array, out: Array, mlp_norm_H: Array, gate_up: Array,
    down: Array, eps: np.float32, cache: Cache, is_last: bool, rounds: bool,
) -> None:  # fmt: skip
    """Replace the hidden states of all tokens by those after the layer, and cache their keys and values.

    Lanes of prompts without a token have row -1. `copies` is [:, 3]: source row, target row, number of positions.
    `cache` is that of the layer, in lanes. Nothing reads what the last layer makes of a prompt.
    """
    hidden, width = len(attention_norm_H), down.shape[1]
    heads, positions, groups = cache.shape[1], cache.shape[3], cache.shape[4]
    size = hidden // heads
    normed_HR = np.empty((hidden, LANES), np.float32)
    qkv_NR, attended_HR = np.empty((3 * hidden, LANES), np.float32), np.empty((hidden, LANES), np.float32)
    gate_up_MR, inner_IR = np.empty((2 * width, LANES), np.float32), np.empty((width, LANES), np.float32)
    query_GW, y_GW = np.zeros((groups, WIDTH), np.float32), np.empty((groups, WIDTH), np.float32)
    weights_TR, weights_TW = np.empty((positions, LANES), np.float32), np.empty((positions, WIDTH), np.float32)
    kv, read = np.empty((heads, 2, positions, size), np.float32), -1
    for b in range(len(x_BHR)):
        x_HR = x_BHR[b]
        if b == prompt_blocks:
            copy_rows(cache, copies)
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
        if b < prompt_blocks:
            read = read_prompts(qkv_NR, row_BR[b], position_BR[b], cache, not is_last, rounds, kv, read, attended_HR)
            if is_last:
                continue
        else:
            block = b - prompt_blocks
            write_lanes(qkv_NR, cache[block], position_BR[b], min(LANES, num_decoded - block * LANES))
            for head in range(heads):
                start = 3 * head * size
                attend_lanes(
                    qkv_NR[start : start + size], cache[block, head], position_BR[b], rounds, query_GW, weights_TR,
                    weights_TW, y_GW, attended_HR[head * size : (head + 1) * size],
                )  # fmt: skip
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
def read_prompts(
    qkv_NR: Array, row_R: Indices, position_R: Indices, cache: Cache, attends: bool, rounds: bool, kv: Array,
    read: int, attended_HR: Array,
) -> int:  # fmt: skip
    """Cache keys and values of a block of prompts, and with `attends` compute its attention.

    `kv` [heads, 2, positions, D] has the first positions of row `read`, the last of the block before. Returns the last
    row of this block.
    """
    heads, size = kv.shape[0], kv.shape[3]
    qkv_RN, attended_RH = np.empty((LANES, len(qkv_NR)), np.float32), np.zeros((LANES, heads * size), np.float32)
    weights_T = np.empty(kv.shape[2], np.float32)
    transpose(qkv_NR, qkv_RN)
    for r in range(LANES):
        row, position = row_R[r], position_R[r]
        if row < 0:
            continue
        block, lane = cache[row // LANES], row % LANES
        if attends and row != read:
            read_row(block, lane, position, kv)
            read = row
        of_heads = qkv_RN[r].reshape(heads, 3, size)
        for head in range(heads):
            write_row(of_heads[head, 1:], block, head, position, lane)
            if attends:
                kv[head, :, position] = of_heads[head, 1:]
                y_D = attended_RH[r, head * size : (head + 1) * size]
                attend_one(of_heads[head, 0], kv[head], position + 1, rounds, weights_T, y_D)
    transpose(attended_RH, attended_HR)
    return read


@kernel
def final_norm(x_BHR: Array, weight_H: Array, eps: np.float32, hidden_NH: Array) -> None:
    """The norm before the head, [tokens, hidden]."""
    normed_HR = np.empty(x_BHR.shape[1:], np.float32)
    for b in range(len(x_BHR)):
        norm(x_BHR[b], weight_H, eps, normed_HR)
        for r in range(min(LANES, len(hidden_NH) - b * LANES)):
            for h in range(len(weight_H)):
                hidden_NH[b * LANES + r, h] = normed_HR[h, r]
