"""A decode step of the built-in policy on a CPU: from tokens to hidden states before the head."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from scalerl.model.kernels.blas import one_thread
from scalerl.model.kernels.cache import as_numbers
from scalerl.model.kernels.decode import decode_layer, embed, final_norm
from scalerl.model.kernels.rows import Array, round_factors
from scalerl.model.kernels.step_tokens import StepTokens
from scalerl.model.llama_files import RMS_EPS

EPS = np.float32(RMS_EPS)


@dataclass(frozen=True, kw_only=True)
class LayerWeights:
    """Weights of one block, as `scalerl.model.llama.Block` holds them."""

    attention_norm: Array
    qkv: Array
    out: Array
    mlp_norm: Array
    gate_up: Array
    down: Array


@dataclass(frozen=True, kw_only=True)
class BodyWeights:
    """Weights of all that is before the head."""

    embedding: Array
    layers: list[LayerWeights]
    norm: Array
    rounds: bool
    """Round both factors of every product to BF16."""


def states_of_step(weights: BodyWeights, layers: list[Tensor], turns: Tensor, tokens: StepTokens) -> Tensor:
    """Hidden states [n, hidden] of the decoded rows; caches keys and values of all tokens of the step.

    `layers` are those of a cache in lanes, in float32 or BF16, `turns` the complex rotations [positions, 1, 1, D / 2].
    """
    blocks, lanes = tokens.token_BR.shape
    hidden, pairs = weights.embedding.shape[1], turns.shape[-1]
    x_BHR = np.empty((blocks, hidden, lanes), np.float32)
    cos_BPR, sin_BPR = np.empty((2, blocks, pairs, lanes), np.float32)
    turn = torch.view_as_real(turns).view(-1, pairs, 2).numpy()
    embed(weights.embedding, tokens.token_BR, tokens.position_BR, turn, x_BHR, cos_BPR, sin_BPR)
    with one_thread():
        for number, one in enumerate(weights.layers):
            qkv, out, gate_up, down = (
                _factor(each, weights.rounds) for each in (one.qkv, one.out, one.gate_up, one.down)
            )
            decode_layer(
                x_BHR, tokens.row_BR, tokens.position_BR, tokens.prompt_blocks, tokens.num_decoded, tokens.copies,
                cos_BPR, sin_BPR, one.attention_norm, qkv, out, one.mlp_norm, gate_up, down, EPS,
                as_numbers(layers[number]), number == len(weights.layers) - 1, weights.rounds,
            )  # fmt: skip
    # In memory of PyTorch's, which is aligned: MKL rounds the head's product by the alignment of its factors.
    hidden_NH = torch.empty(tokens.num_decoded, hidden, device="cpu")
    final_norm(x_BHR[tokens.prompt_blocks :], weights.norm, EPS, hidden_NH.numpy())
    return hidden_NH


def _factor(matrix: Array, rounds: bool) -> Array:
    """The matrix, or a copy rounded to BF16; made anew in every step, because weights change in place."""
    if not rounds:
        return matrix
    rounded = np.empty_like(matrix)
    round_factors(matrix, rounded)
    return rounded
