"""One decoder block of the built-in Llama on a CPU, forward and backward, compiled by numba.

A row is one token. Rows pass through norm, product, activation and sum in blocks small enough for the processor's
caches, and attention runs sequence by sequence. Products are `np.dot`, which numba compiles to a call of BLAS.

    h1 = norm(x) a_norm      q, k, v = h1 qkv^T, q and k rotated     x' = x + attention(q, k, v) out^T
    h2 = norm(x') m_norm     g, u = h2 gate_up^T                     y = x' + (silu(g) u) down^T

Axes: N rows, B sequences, T positions, H hidden, M width of the feed-forward layer, D head size. Of sequence b, the
rows of the positions up to its end are `table_BT[b]`; its own ones are `first_B[b]` and the `count_B[b] - 1` after it,
whose first position is `start_B[b]`. Rows before that belong to another sequence with the same prompt.
"""

import math
from typing import Any

import numpy as np

from scalerl.model.kernels.compiled import kernel
from scalerl.model.kernels.rows import ONE, ZERO, Array, exp, silu
from scalerl.model.kernels.step_tokens import Indices
from scalerl.model.llama_files import RMS_EPS

ROWS_AT_ONCE = 32
"""Rows that go through a product together."""
CHUNK = 256
"""Rows whose contribution to a gradient of a weight matrix is one product."""
QUERIES = 64
"""Queries of a sequence that are attended together; attention needs memory for this number times the keys."""

_EPS = np.float32(RMS_EPS)


@kernel
def norm_row(x: Array, weight: Array, h: Array) -> Any:
    """h = x / sqrt(mean x^2 + EPS) weight for one row; returns 1 / sqrt(...)."""
    total = ZERO
    for i in range(len(x)):
        total += x[i] * x[i]
    inverse = ONE / np.sqrt(total / np.float32(len(x)) + _EPS)
    for i in range(len(x)):
        h[i] = x[i] * inverse * weight[i]
    return inverse


@kernel
def add_norm_row_gradient(of_h: Array, x: Array, weight: Array, of_x: Array, of_weight: Array) -> None:
    """Add to `of_x` and `of_weight` the gradient of a row's norm, given that of its output."""
    squares, along = ZERO, ZERO
    for i in range(len(x)):
        squares += x[i] * x[i]
        along += of_h[i] * weight[i] * x[i]
    size = np.float32(len(x))
    inverse = ONE / np.sqrt(squares / size + _EPS)
    shrink = along * inverse * inverse * inverse / size
    for i in range(len(x)):
        of_x[i] += of_h[i] * weight[i] * inverse - x[i] * shrink
        of_weight[i] += of_h[i] * x[i] * inverse


@kernel
def rotate_row(qkv: Array, cos: Array, sin: Array, sense: Any, heads: int) -> None:
    """Rotate the pairs of adjacent numbers of each head's query and key, in place; [3 H], cos and sin [D / 2].

    `sense` is 1, or -1 to rotate back."""
    half = len(cos)
    for head in range(heads):
        for part in range(2):
            pairs = qkv[(3 * head + part) * 2 * half : (3 * head + part + 1) * 2 * half]
            for i in range(half):
                a, b = pairs[2 * i], pairs[2 * i + 1]
                pairs[2 * i] = a * cos[i] - b * sense * sin[i]
                pairs[2 * i + 1] = a * sense * sin[i] + b * cos[i]


# --- forward --------------------------------------------------------------------------------------------------------


@kernel
def project(
    x_NH: Array, norm_H: Array, qkv_HW: Array, cos_TC: Array, sin_TC: Array, position_N: Indices, heads: int, qkv: Array
) -> None:
    """Rotated queries and keys, and values, into `qkv` [N, 3 H]."""
    h = np.empty((ROWS_AT_ONCE, x_NH.shape[1]), np.float32)
    for first in range(0, len(x_NH), ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, len(x_NH) - first)
        for i in range(n):
            norm_row(x_NH[first + i], norm_H, h[i])
        np.dot(h[:n], qkv_HW, qkv[first : first + n])
        for i in range(first, first + n):
            rotate_row(qkv[i], cos_TC[position_N[i]], sin_TC[position_N[i]], ONE, heads)


@kernel
def gather(qkv: Array, rows: Indices, column: int, size: int, to: Array) -> None:
    """Columns of some rows, [rows, size]."""
    for i in range(len(rows)):
        for j in range(size):
            to[i, j] = qkv[rows[i], column + j]


@kernel
def attend_rows(
    qkv: Array,
    table_BT: Indices,
    first_B: Indices,
    count_B: Indices,
    start_B: Indices,
    heads: int,
    out: Array,
    lse: Array,
) -> None:
    """Causal attention of every row into `out` [N, H], and log sum e^score into `lse` [N, heads]."""
    size, longest = out.shape[1] // heads, table_BT.shape[1]
    scale = np.float32(1 / math.sqrt(size))
    keys, values = np.empty(longest * size, np.float32), np.empty(longest * size, np.float32)
    scores, queries = np.empty(QUERIES * longest, np.float32), np.empty((QUERIES, size), np.float32)
    mixed = np.empty((QUERIES, size), np.float32)
    for b in range(len(first_B)):
        for head in range(heads):
            column = 3 * head * size
            for begin in range(0, count_B[b], QUERIES):
                n, row = min(QUERIES, count_B[b] - begin), first_B[b] + begin
                before = start_B[b] + begin
                num = before + n
                rows = table_BT[b, :num]
                k, v = keys[: num * size].reshape(num, size), values[: num * size].reshape(num, size)
                p = scores[: n * num].reshape(n, num)
                gather(qkv, rows, column + size, size, k)
                gather(qkv, rows, column + 2 * size, size, v)
                for i in range(n):
                    for j in range(size):
                        queries[i, j] = qkv[row + i, column + j] * scale
                np.dot(queries[:n], k.T, p)
                for i in range(n):
                    lse[row + i, head] = softmax_row(p[i], before + i + 1)
                np.dot(p, v, mixed[:n])
                for i in range(n):
                    for j in range(size):
                        out[row + i, head * size + j] = mixed[i, j]


@kernel
def softmax_row(scores: Array, seen: int) -> Any:
    """Softmax of the first `seen` scores in place, the others become 0; returns log sum e^score."""
    most = scores[0]
    for j in range(1, seen):
        most = max(most, scores[j])
    total = ZERO
    for j in range(seen):
        scores[j] = exp(scores[j] - most)
        total += scores[j]
    for j in range(seen):
        scores[j] /= total
    for j in range(seen, len(scores)):
        scores[j] = ZERO
    return most + np.log(total)


@kernel
def add_output(a: Array, weight: Array, x: Array, out: Array) -> None:
    """out = x + a weight, row block by row block; weight is [in, H]."""
    for first in range(0, len(x), ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, len(x) - first)
        np.dot(a[first : first + n], weight, out[first : first + n])
        for i in range(first, first + n):
            for j in range(x.shape[1]):
                out[i, j] += x[i, j]


@kernel
def feed_forward(x_NH: Array, norm_H: Array, gate_up_HW: Array, down_MH: Array, gate_up: Array, out: Array) -> None:
    """x plus the feed-forward layer, into `out`; its gates and ups into `gate_up` [N, 2 M]."""
    width = len(down_MH)
    h, act = np.empty((ROWS_AT_ONCE, x_NH.shape[1]), np.float32), np.empty((ROWS_AT_ONCE, width), np.float32)
    for first in range(0, len(x_NH), ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, len(x_NH) - first)
        for i in range(n):
            norm_row(x_NH[first + i], norm_H, h[i])
        np.dot(h[:n], gate_up_HW, gate_up[first : first + n])
        for i in range(n):
            one = gate_up[first + i]
            for j in range(width):
                act[i, j] = silu(one[j]) * one[width + j]
        np.dot(act[:n], down_MH, out[first : first + n])
        for i in range(n):
            for j in range(x_NH.shape[1]):
                out[first + i, j] += x_NH[first + i, j]


@kernel
def norm_rows(x_NH: Array, norm_H: Array, out: Array) -> None:
    """The norm of every row."""
    for i in range(len(x_NH)):
        norm_row(x_NH[i], norm_H, out[i])


# --- backward -------------------------------------------------------------------------------------------------------


@kernel
def norm_rows_gradient(of_out: Array, x_NH: Array, norm_H: Array, of_x: Array, of_norm: Array) -> None:
    """Add the gradient of `norm_rows`."""
    for i in range(len(x_NH)):
        add_norm_row_gradient(of_out[i], x_NH[i], norm_H, of_x[i], of_norm)


@kernel
def add_weight_gradient(of_out: Array, x: Array, of_weight: Array) -> None:
    """of_weight += of_out^T x."""
    of_weight += np.dot(of_out.T, x)


@kernel
def feed_forward_gradient(
    of_out: Array,
    x_NH: Array,
    gate_up: Array,
    norm_H: Array,
    gate_up_WH: Array,
    down_HM: Array,
    of_x: Array,
    of_norm: Array,
    of_gate_up: Array,
    of_down: Array,
) -> None:
    """Gradient of `feed_forward`: `of_x` is set, that of weights is added."""
    hidden, width = down_HM.shape
    most = min(CHUNK, len(x_NH))
    h, act = np.empty((most, hidden), np.float32), np.empty((most, width), np.float32)
    of_gates = np.empty((most, 2 * width), np.float32)
    of_act, of_h = np.empty((ROWS_AT_ONCE, width), np.float32), np.empty((ROWS_AT_ONCE, hidden), np.float32)
    for chunk in range(0, len(x_NH), CHUNK):
        rows = min(CHUNK, len(x_NH) - chunk)
        for first in range(0, rows, ROWS_AT_ONCE):
            n, at = min(ROWS_AT_ONCE, rows - first), chunk + first
            np.dot(of_out[at : at + n], down_HM, of_act[:n])
            for i in range(n):
                one, of_one = gate_up[at + i], of_gates[first + i]
                for j in range(width):
                    gate, up = one[j], one[width + j]
                    sigmoid = ONE / (ONE + exp(-gate))
                    opened = gate * sigmoid
                    act[first + i, j] = opened * up
                    of_one[j] = of_act[i, j] * up * (sigmoid + opened * (ONE - sigmoid))
                    of_one[width + j] = of_act[i, j] * opened
            np.dot(of_gates[first : first + n], gate_up_WH, of_h[:n])
            for i in range(n):
                norm_row(x_NH[at + i], norm_H, h[first + i])
                for j in range(hidden):
                    of_x[at + i, j] = of_out[at + i, j]
                add_norm_row_gradient(of_h[i], x_NH[at + i], norm_H, of_x[at + i], of_norm)
        add_weight_gradient(of_out[chunk : chunk + rows], act[:rows], of_down)
        add_weight_gradient(of_gates[:rows], h[:rows], of_gate_up)


@kernel
def attend_gradient(
    of_out: Array,
    out: Array,
    lse: Array,
    qkv: Array,
    table_BT: Indices,
    first_B: Indices,
    count_B: Indices,
    start_B: Indices,
    heads: int,
    of_qkv: Array,
) -> None:
    """Add the gradient of `attend_rows` to `of_qkv` [N, 3 H].

    dV = P^T dO        dS = P (dO V^T - rowsum(dO O))        dQ = dS K        dK = dS^T Q    (arXiv 2307.08691)
    """
    size, longest = out.shape[1] // heads, table_BT.shape[1]
    scale = np.float32(1 / math.sqrt(size))
    many = longest * size
    keys, values, of_keys = np.empty(many, np.float32), np.empty(many, np.float32), np.empty(many, np.float32)
    scores, of_scores = np.empty(QUERIES * longest, np.float32), np.empty(QUERIES * longest, np.float32)
    queries, of_mixed = np.empty((QUERIES, size), np.float32), np.empty((QUERIES, size), np.float32)
    of_queries = np.empty((QUERIES, size), np.float32)
    for b in range(len(first_B)):
        for head in range(heads):
            column = 3 * head * size
            for begin in range(0, count_B[b], QUERIES):
                n, row = min(QUERIES, count_B[b] - begin), first_B[b] + begin
                before = start_B[b] + begin
                num = before + n
                rows = table_BT[b, :num]
                k, of_k = keys[: num * size].reshape(num, size), of_keys[: num * size].reshape(num, size)
                v = values[: num * size].reshape(num, size)
                p, of_p = scores[: n * num].reshape(n, num), of_scores[: n * num].reshape(n, num)
                gather(qkv, rows, column + size, size, k)
                gather(qkv, rows, column + 2 * size, size, v)
                for i in range(n):
                    for j in range(size):
                        queries[i, j] = qkv[row + i, column + j] * scale
                        of_mixed[i, j] = of_out[row + i, head * size + j]
                np.dot(queries[:n], k.T, p)
                np.dot(of_mixed[:n], v.T, of_p)
                for i in range(n):
                    along, normaliser = ZERO, lse[row + i, head]
                    for j in range(size):
                        along += of_mixed[i, j] * out[row + i, head * size + j]
                    for j in range(before + i + 1):
                        p[i, j] = exp(p[i, j] - normaliser)
                        of_p[i, j] = p[i, j] * (of_p[i, j] - along)
                    for j in range(before + i + 1, num):
                        p[i, j] = ZERO
                        of_p[i, j] = ZERO
                np.dot(p.T, of_mixed[:n], of_k)
                scatter(of_k, rows, column + 2 * size, size, of_qkv)
                np.dot(of_p.T, queries[:n], of_k)
                scatter(of_k, rows, column + size, size, of_qkv)
                np.dot(of_p, k, of_queries[:n])
                for i in range(n):
                    for j in range(size):
                        of_qkv[row + i, column + j] += of_queries[i, j] * scale


@kernel
def scatter(values: Array, rows: Indices, column: int, size: int, to: Array) -> None:
    """Add [rows, size] to columns of these rows."""
    for i in range(len(rows)):
        for j in range(size):
            to[rows[i], column + j] += values[i, j]


@kernel
def output_gradient(of_x: Array, attended: Array, out_HH: Array, of_attended: Array, of_out: Array) -> None:
    """Gradient of x + attended out^T: `of_attended` is set, that of the weights is added."""
    for first in range(0, len(of_x), ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, len(of_x) - first)
        np.dot(of_x[first : first + n], out_HH, of_attended[first : first + n])
    for chunk in range(0, len(of_x), CHUNK):
        add_weight_gradient(of_x[chunk : chunk + CHUNK], attended[chunk : chunk + CHUNK], of_out)


@kernel
def project_gradient(
    of_projected: Array,
    x_NH: Array,
    norm_H: Array,
    qkv_WH: Array,
    cos_TC: Array,
    sin_TC: Array,
    position_N: Indices,
    heads: int,
    of_x: Array,
    of_norm: Array,
    of_qkv: Array,
) -> None:
    """Gradient of `project`, added to that of x and of the weights; `of_projected` is rotated back in place."""
    hidden = x_NH.shape[1]
    h, of_h = np.empty((min(CHUNK, len(x_NH)), hidden), np.float32), np.empty((ROWS_AT_ONCE, hidden), np.float32)
    for chunk in range(0, len(x_NH), CHUNK):
        rows = min(CHUNK, len(x_NH) - chunk)
        for first in range(0, rows, ROWS_AT_ONCE):
            n, at = min(ROWS_AT_ONCE, rows - first), chunk + first
            for i in range(at, at + n):
                rotate_row(of_projected[i], cos_TC[position_N[i]], sin_TC[position_N[i]], -ONE, heads)
            np.dot(of_projected[at : at + n], qkv_WH, of_h[:n])
            for i in range(n):
                norm_row(x_NH[at + i], norm_H, h[first + i])
                add_norm_row_gradient(of_h[i], x_NH[at + i], norm_H, of_x[at + i], of_norm)
        add_weight_gradient(of_projected[chunk : chunk + rows], h[:rows], of_qkv)


@kernel
def add_rows(of_x: Array, tokens_N: Indices, of_embedding: Array) -> None:
    """Add each row to that of its token."""
    for i in range(len(tokens_N)):
        for j in range(of_x.shape[1]):
            of_embedding[tokens_N[i], j] += of_x[i, j]
