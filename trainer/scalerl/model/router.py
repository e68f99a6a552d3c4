"""Load-balancing loss, which keeps a mixture of experts from sending every token to the same few experts.

The loss is per sequence (DeepSeek-V3, arXiv 2412.19437, eq. 17-20), so micro-batches add up to exactly the loss of the
whole batch; the batch-wide loss of Switch Transformers (arXiv 2101.03961) does not. The scale is that of
`transformers`: the number of experts per token if all experts are used equally.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from scalerl.model.packing import Packing


@dataclass(frozen=True, kw_only=True)
class Routing:
    """Router logits [tokens, experts] of each layer with experts, tokens in input order."""

    logits: tuple[Tensor, ...]
    experts_per_token: int


def sequence_balance(logits_NE: Tensor, sequence_N: Tensor, num_sequences: int, experts_per_token: int) -> Tensor:
    """E sum_e f_e P_e of each sequence, [B]: f_e the share of tokens routed to e, P_e the mean probability of e."""
    num_experts = logits_NE.shape[1]
    probability_NE = logits_NE.float().softmax(-1)
    chosen_NE = torch.zeros_like(probability_NE).scatter(1, probability_NE.topk(experts_per_token).indices, 1.0)
    # Not bincount, which makes the host wait.
    tokens_B = sequence_N.new_zeros(num_sequences).index_add(0, sequence_N, torch.ones_like(sequence_N))
    tokens_B1 = tokens_B.clamp(min=1)[:, None]
    zeros_BE = probability_NE.new_zeros(num_sequences, num_experts)
    share_BE = zeros_BE.index_add(0, sequence_N, chosen_NE) / tokens_B1
    mean_BE = zeros_BE.index_add(0, sequence_N, probability_NE) / tokens_B1
    return num_experts * (share_BE * mean_BE).sum(1)


def balance(routing: Routing, length_B: Tensor, shape: torch.Size | None) -> Tensor:
    """Mean of `sequence_balance` over layers, [B], without padding; `shape` is [B, T] for padded rows, else None.

    Lengths are on the host."""
    packing = Packing.of(length_B).to(routing.logits[0].device)
    layers = []
    for logits in routing.logits:
        logits_NE = logits if shape is None else packing.packed(logits.view(*shape, -1))
        layers.append(sequence_balance(logits_NE, packing.sequence_N, len(length_B), routing.experts_per_token))
    return torch.stack(layers).mean(0)
