"""Attention of packed sequences without a full token-by-token mask.

A pass of 32,000 packed tokens has a billion pairs of tokens. On a GPU, FlexAttention (`torch.nn.attention`) computes
only the
blocks in which the host found a visible pair, and looks at single pairs only if not all pairs of a block are visible.
On a CPU the queries, keys and values of each sequence are laid out in a separate row, and rows are attended one by
one. Tests compare both with the full mask.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from scalerl.model.packing import Packing

BY_BLOCKS, BY_ROWS = "packed", "rows"
"""Names in a model's configuration of attention by blocks and by rows."""
BLOCK = 128
"""Tokens per side of a block, as in FlexAttention."""


def seen_blocks(packing: Packing, window: int | None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Key blocks (columns) that some token of a query block (row) sees, and those that every token sees whole, both
    [blocks, blocks]; the packing must be on the host."""
    sequence_N, position_N, token_BT = (
        part.numpy() for part in (packing.sequence_N, packing.position_N, packing.token_BT)
    )
    num_blocks = -(-len(sequence_N) // BLOCK)
    some = np.zeros((num_blocks, num_blocks), dtype=np.bool_)
    every = np.zeros_like(some)
    for row in range(num_blocks):
        here = slice(row * BLOCK, (row + 1) * BLOCK)
        fewest = np.full(num_blocks, BLOCK)
        for sequence in np.unique(sequence_N[here]):
            position = position_N[here][sequence_N[here] == sequence]
            first, last = (0 if window is None else max(0, at - window + 1) for at in (position.min(), position.max()))
            some[row, token_BT[sequence, first : position.max() + 1] // BLOCK] = True
            by_all = token_BT[sequence, last : position.min() + 1] // BLOCK
            fewest = np.minimum(fewest, np.bincount(by_all, minlength=num_blocks))
        every[row] = fewest == BLOCK
    return some, every


def owners(packing: Packing) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """First and last sequence that each packed token belongs to, [N], as ranks that give a group consecutive numbers.

    A token's own sequence is the first that it belongs to. The packing must be on the host.
    """
    token_BT, own_N, position_N = (part.numpy() for part in (packing.token_BT, packing.sequence_N, packing.position_N))
    rank_B = np.argsort(np.argsort(token_BT[:, 0], kind="stable"), kind="stable")
    length_B = np.zeros(len(token_BT), dtype=np.int64)
    np.maximum.at(length_B, own_N, position_N + 1)
    holds_BT = np.arange(token_BT.shape[1]) < length_B[:, None]
    last_N = np.zeros(len(own_N), dtype=np.int32)
    np.maximum.at(last_N, token_BT[holds_BT], np.broadcast_to(rank_B[:, None], token_BT.shape)[holds_BT])
    return rank_B[own_N].astype(np.int32), last_N


def block_mask(packing: Packing, window: int | None) -> BlockMask:
    """Mask of a packed row: each token sees itself and up to `window` positions back in its own sequence."""
    host, device = packing.host or packing, packing.sequence_N.device
    some, every = seen_blocks(host, window)

    def sent(array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array.astype(np.int32)).to(device, non_blocking=True)

    def listed(chosen: NDArray[np.bool_]) -> tuple[Tensor, Tensor]:
        """Number of chosen blocks of each row, and the blocks, the chosen ones first and in order."""
        return sent(chosen.sum(1))[None, None], sent(np.argsort(~chosen, axis=1, kind="stable"))[None, None]

    first_N, last_N = (sent(array) for array in owners(host))
    position_N = packing.position_N

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        is_of_mine = (first_N[key] <= first_N[query]) & (first_N[query] <= last_N[key])
        return is_of_mine & (position_N[key] <= position_N[query])

    length = len(packing.sequence_N)
    reach = length if window is None else window

    def sees_near(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return sees(batch, head, query, key) & (position_N[query] - position_N[key] < reach)

    return BlockMask.from_kv_blocks(
        *listed(some & ~every),  # single pairs are checked
        *listed(every),
        BLOCK_SIZE=BLOCK,
        mask_mod=sees if window is None else sees_near,
        seq_lengths=(length, length),
    )


class RowsMask(Tensor):
    """The layout of a packed row, passed where `transformers` expects a mask [1, 1, N, N]; it cannot be used as a
    mask."""

    packing: Packing
    window: int | None

    @classmethod
    def of(cls, packing: Packing, window: int | None) -> "RowsMask":
        """The layout, and the number of positions that a token sees (None: all before it)."""
        mask = torch.empty(1, 1, 0, 0).as_subclass(cls)
        mask.packing, mask.window = packing, window
        return mask


def attend_by_rows(query: Tensor, key: Tensor, value: Tensor, mask: RowsMask, scale: float | None) -> Tensor:
    """Attention [1, N, heads, D] of packed queries, keys and values [1, heads, N, D], sequence by sequence."""
    packing, shared = mask.packing, query.shape[1] // key.shape[1]
    q, k, v = (packing.padded(part[0].transpose(0, 1)).transpose(1, 2) for part in (query, key, value))
    if shared > 1:
        k, v = k.repeat_interleave(shared, dim=1), v.repeat_interleave(shared, dim=1)
    seen_TT = None
    if mask.window is not None:
        position_T = torch.arange(q.shape[2], device=q.device)
        back_TT = position_T[:, None] - position_T
        seen_TT = (back_TT >= 0) & (back_TT < mask.window)
    attended = F.scaled_dot_product_attention(q, k, v, seen_TT, is_causal=seen_TT is None, scale=scale)
    return packing.packed(attended.transpose(1, 2))[None]


def attend_by_groups(query: Tensor, key: Tensor, value: Tensor, seen: Tensor, scale: float | None) -> Tensor:
    """Attention [R, 1, heads, D] of one token a row, to keys [R, shared heads, K, D] that are seen [R, 1, 1, K].

    Heads that share keys are treated as positions of one head, so that no key is copied.
    """
    rows, heads, _, size = query.shape
    grouped = query.reshape(rows, key.shape[1], heads // key.shape[1], size)
    attended = F.scaled_dot_product_attention(grouped, key, value, seen, scale=scale)
    return attended.reshape(rows, 1, heads, value.shape[-1])


@cache
def compiled() -> Any:
    """FlexAttention compiled into one kernel; uncompiled, PyTorch builds the full score matrix."""
    return torch.compile(flex_attention, dynamic=True)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: BlockMask | RowsMask | Tensor | None,
    **named: Any,
) -> tuple[Tensor, None]:
    """Attention [R, W, heads, D] of queries, keys and values [R, heads, W, D], with a mask of any kind."""
    if isinstance(attention_mask, RowsMask):
        return attend_by_rows(query, key, value, attention_mask, named.get("scaling")), None
    if query.shape[2] == 1 and query.shape[1] > key.shape[1] and isinstance(attention_mask, Tensor):
        return attend_by_groups(query, key, value, attention_mask, named.get("scaling")), None
    if not isinstance(attention_mask, BlockMask):
        return sdpa_attention_forward(module, query, key, value, attention_mask, **named)
    kernel = compiled() if query.device.type == "cuda" else flex_attention
    shares_keys = query.shape[1] != key.shape[1]
    attended = kernel(query, key, value, block_mask=attention_mask, scale=named.get("scaling"), enable_gqa=shares_keys)
    return attended.transpose(1, 2).contiguous(), None


for name in (BY_BLOCKS, BY_ROWS):
    AttentionInterface.register(name, attend)
