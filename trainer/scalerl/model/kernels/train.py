"""Hidden states of the built-in Llama on a CPU, and their gradient, without an operator of PyTorch in between.

A model of hidden size 64 spends more time in PyTorch's operators, which each read and write all rows, than in its
arithmetic; `scalerl.model.kernels.passes` does the arithmetic in blocks of rows. Only first-order gradients exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from scalerl.model.kernels import passes
from scalerl.model.kernels.blas import one_thread
from scalerl.model.kernels.rows import Array
from scalerl.model.kernels.step_tokens import Indices
from scalerl.model.packing import Packing


@dataclass(frozen=True, kw_only=True)
class Sequences:
    """The rows of each sequence (letters as in `passes`).

    Lengths 3 and 3 with a shared prompt of one token are `first_B` 0 3, `count_B` 3 2, `start_B` 0 1 and `table_BT`
    0 1 2 and 0 3 4.
    """

    table_BT: Indices
    first_B: Indices
    count_B: Indices
    start_B: Indices
    position_N: Indices

    @classmethod
    def packed(cls, packing: Packing) -> "Sequences":
        """Those of a packed row, whose tokens are in order."""
        sequence_N, position_N = packing.sequence_N.numpy(), packing.position_N.numpy()
        found, first, count = np.unique(sequence_N, return_index=True, return_counts=True)
        return cls(
            table_BT=np.ascontiguousarray(packing.token_BT.numpy()[found]),
            first_B=first,
            count_B=count,
            start_B=position_N[first],
            position_N=position_N,
        )

    @classmethod
    def padded(cls, rows: int, width: int) -> "Sequences":
        """Those of [B, T], padding included."""
        table_BT = np.arange(rows * width).reshape(rows, width)
        return cls(
            table_BT=table_BT,
            first_B=table_BT[:, 0].copy(),
            count_B=np.full(rows, width),
            start_B=np.zeros(rows, dtype=np.int64),
            position_N=np.tile(np.arange(width), rows),
        )

    @property
    def rows(self) -> tuple[Indices, Indices, Indices, Indices]:
        """The arguments of attention."""
        return self.table_BT, self.first_B, self.count_B, self.start_B


def hidden_states(
    tokens_N: Tensor, sequences: Sequences, weights: Sequence[Tensor], *, heads: int, turn: tuple[Tensor, Tensor]
) -> Tensor:
    """Final hidden states [N, H] of the tokens.

    Weights are the embedding, the last norm, and of each block the norm before attention, q/k/v, output, the norm
    before the feed-forward layer, gate/up and down. `turn` are cosines and sines of positions, [T, D / 2].
    """
    cos, sin = (part.contiguous().numpy() for part in turn)
    is_kept = torch.is_grad_enabled() and any(weight.requires_grad for weight in weights)
    states = _Body.apply(tokens_N, sequences, heads, (cos, sin), is_kept, *weights)
    assert isinstance(states, Tensor)
    return states


class _Body(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        tokens_N: Tensor,
        sequences: Sequences,
        heads: int,
        turn: tuple[Array, Array],
        is_kept: bool,
        *weights: Tensor,
    ) -> Tensor:
        embedding, norm, *others = weights
        x = F.embedding(tokens_N, embedding)
        here, kept = list[Tensor](), list[Tensor]()
        with one_thread():
            for attention_norm, qkv, out, mlp_norm, gate_up, down in _blocks(others):
                n, hidden = x.shape
                if is_kept or not here:
                    widths = len(qkv), hidden, heads, hidden, len(gate_up)
                    here = [torch.empty(n, width, device=x.device) for width in widths]
                projected, attended, lse, middle, gates = (part.numpy() for part in here)
                y = torch.empty_like(x)
                passes.project(x.numpy(), attention_norm, across(qkv), *turn, sequences.position_N, heads, projected)
                passes.attend_rows(projected, *sequences.rows, heads, attended, lse)
                passes.add_output(attended, across(out), x.numpy(), middle)
                passes.feed_forward(middle, mlp_norm, across(gate_up), across(down), gates, y.numpy())
                kept += [x, *here] if is_kept else []
                x = y
            states = torch.empty_like(x)
            passes.norm_rows(x.numpy(), norm.detach().numpy(), states.numpy())
        if is_kept:
            ctx.save_for_backward(tokens_N, x, *weights, *kept)
            ctx.num_weights, ctx.sequences, ctx.heads, ctx.turn = len(weights), sequences, heads, turn
        return states

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError("create_graph: compiled kernels have a first gradient only; set recompute for a second")
        tokens_N, last, *saved = ctx.saved_tensors
        weights, kept = saved[: ctx.num_weights], saved[ctx.num_weights :]
        found = [torch.zeros_like(weight) for weight in weights]
        sequences, heads = ctx.sequences, ctx.heads
        of_x, (last_N, norm) = np.zeros_like(last.numpy()), (last.numpy(), weights[1].numpy())
        of_middle, of_attended = np.empty_like(of_x), np.empty_like(of_x)
        of_projected = np.empty((len(last), 3 * last.shape[1]), np.float32)
        (table, first, count, start), (cos, sin) = sequences.rows, ctx.turn
        with one_thread():
            passes.norm_rows_gradient(gradients[0].contiguous().numpy(), last_N, norm, of_x, found[1].numpy())
            each = zip(_grouped(kept, 6), _blocks(weights[2:]), _blocks(found[2:]), strict=True)
            for here, own, of_own in reversed(list(each)):
                x, projected, attended, lse, middle, gates = here
                attention_norm, qkv, out, mlp_norm, gate_up, down = own
                of_attention_norm, of_qkv, of_out, of_mlp_norm, of_gate_up, of_down = of_own
                passes.feed_forward_gradient(
                    of_x, middle, gates, mlp_norm, gate_up, down, of_middle, of_mlp_norm, of_gate_up, of_down
                )
                passes.output_gradient(of_middle, attended, out, of_attended, of_out)
                of_projected.fill(0)
                passes.attend_gradient(
                    of_attended, attended, lse, projected, table, first, count, start, heads, of_projected
                )
                passes.project_gradient(
                    of_projected,
                    x,
                    attention_norm,
                    qkv,
                    cos,
                    sin,
                    sequences.position_N,
                    heads,
                    of_middle,
                    of_attention_norm,
                    of_qkv,
                )
                of_x, of_middle = of_middle, of_x
            passes.add_rows(of_x, tokens_N.numpy(), found[0].numpy())
        return *(None,) * 5, *found


def _grouped(tensors: Sequence[Tensor], number: int) -> list[list[Array]]:
    """Their arrays, which share memory, in groups of so many."""
    arrays = [tensor.detach().numpy() for tensor in tensors]
    return [arrays[first : first + number] for first in range(0, len(arrays), number)]


def _blocks(tensors: Sequence[Tensor]) -> list[list[Array]]:
    """The arrays of each block."""
    return _grouped(tensors, 6)


def across(weight: Array) -> Array:
    """[in, out] of [out, in]: a product of few rows reads it twice as fast."""
    return np.ascontiguousarray(weight.T)
