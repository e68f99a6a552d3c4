"""Block-sparse attention without a full token-by-token mask.

A pass of 32,000 packed tokens has a billion pairs. On a GPU, FlexAttention (`torch.nn.attention`) computes only the
blocks in which the host found a visible pair. On a CPU passes are small, so `transformers` gets the full mask; tests
compare the two.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from scalerl.model.packing import Packing

ATTENTION_NAME = "packed"
"""Name of this attention in a model's configuration."""
BLOCK = 128
"""Tokens per side of a block, as in FlexAttention."""


def blocks_with_pairs(packing: Packing, window: int | None) -> NDArray[np.bool_]:
    """True if a token of a query block (row) sees a token of a key block (column), [blocks, blocks].

    The packing must be on the host.
    """
    sequence_N, position_N, token_BT = (
        part.numpy() for part in (packing.sequence_N, packing.position_N, packing.token_BT)
    )
    num_blocks = -(-len(sequence_N) // BLOCK)
    found = np.zeros((num_blocks, num_blocks), dtype=np.bool_)
    for row in range(num_blocks):
        here = slice(row * BLOCK, (row + 1) * BLOCK)
        for sequence in np.unique(sequence_N[here]):
            position = position_N[here][sequence_N[here] == sequence]
            first = 0 if window is None else max(0, position.min() - window + 1)
            found[row, token_BT[sequence, first : position.max() + 1] // BLOCK] = True
    return found


def block_mask(packing: Packing, window: int | None) -> BlockMask:
    """Mask of a packed row: each token sees itself and up to `window` positions back in its own sequence."""
    blocks = blocks_with_pairs(packing.host or packing, window)
    device, length = packing.sequence_N.device, len(packing.sequence_N)
    number = torch.from_numpy(blocks.sum(1).astype(np.int32)).to(device, non_blocking=True)
    order = np.argsort(~blocks, axis=1, kind="stable").astype(np.int32)  # blocks with pairs first, in order
    sequence_N, position_N, token_BT = packing.sequence_N, packing.position_N, packing.token_BT

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        back = position_N[query] - position_N[key]
        is_of_mine = token_BT[sequence_N[query], position_N[key]] == key
        return is_of_mine & (back >= 0) & (back < (length if window is None else window))

    return BlockMask.from_kv_blocks(
        number[None, None],
        torch.from_numpy(order).to(device, non_blocking=True)[None, None],
        BLOCK_SIZE=BLOCK,
        mask_mod=sees,
        seq_lengths=(length, length),
    )


@cache
def compiled() -> Any:
    """FlexAttention compiled into one kernel; uncompiled, PyTorch builds the full score matrix."""
    return torch.compile(flex_attention, dynamic=True)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: BlockMask | Tensor | None,
    **named: Any,
) -> tuple[Tensor, None]:
    """Attention [R, W, heads, D] of queries, keys and values [R, heads, W, D], with a block mask or a full one."""
    if not isinstance(attention_mask, BlockMask):
        return sdpa_attention_forward(module, query, key, value, attention_mask, **named)
    kernel = compiled() if query.device.type == "cuda" else flex_attention
    shares_keys = query.shape[1] != key.shape[1]
    attended = kernel(query, key, value, block_mask=attention_mask, scale=named.get("scaling"), enable_gqa=shares_keys)
    return attended.transpose(1, 2).contiguous(), None


AttentionInterface.register(ATTENTION_NAME, attend)
