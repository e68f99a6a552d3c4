"""Sequences one after the other in a row instead of one a row: no product is spent on padding.

    lengths 2, 3    sequence_N 0 0 1 1 1    position_N 0 1 0 1 2

Positions start again with each sequence, and no sequence attends to another.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Packing:
    """Where each of the N tokens of a packed row stands in the right-padded [B, T]."""

    sequence_N: Tensor
    """Row of [B, T]."""
    position_N: Tensor
    """Column of [B, T], which is also the position in the sequence."""
    length_B: Tensor

    @classmethod
    def of(cls, length_B: Tensor) -> "Packing":
        """The packing of sequences of these lengths, in order."""
        valid_BT = torch.arange(int(length_B.max())) < length_B[:, None]
        sequence_N, position_N = valid_BT.nonzero(as_tuple=True)
        return cls(sequence_N=sequence_N, position_N=position_N, length_B=length_B)

    @property
    def has_next(self) -> Tensor:
        """True where another token of the same sequence follows, [N]."""
        return self.position_N < self.length_B[self.sequence_N] - 1

    def packed(self, padded: Tensor) -> Tensor:
        """[N, ...] of [B, T, ...]."""
        return padded[self.sequence_N, self.position_N]

    def padded(self, packed: Tensor) -> Tensor:
        """[B, T, ...] of [N, ...], 0 where padding is."""
        empty = packed.new_zeros(len(self.length_B), int(self.length_B.max()), *packed.shape[1:])
        return empty.index_put((self.sequence_N, self.position_N), packed)

    def following(self, values: Tensor) -> Tensor:
        """[B, T] of one value for each token that follows another in its sequence, 0 elsewhere."""
        after = self.position_N > 0
        empty_BT = values.new_zeros(len(self.length_B), int(self.length_B.max()))
        return empty_BT.index_put((self.sequence_N[after], self.position_N[after]), values)

    def may_attend(self) -> Tensor:
        """Whether each token (row) may look at each other (column), [N, N]: itself and what its sequence has before."""
        same = self.sequence_N[:, None] == self.sequence_N
        return same & (self.position_N <= self.position_N[:, None])


def padded_micro_batches(length_B: Tensor, max_tokens: int) -> list[Tensor]:
    """Row indices, longest rows first, so that rows x longest row stays within `max_tokens` (one row at least)."""
    order = torch.argsort(length_B, descending=True, stable=True)
    batches, start = [], 0
    while start < len(order):
        size = max(1, max_tokens // int(length_B[order[start]]))
        batches.append(order[start : start + size])
        start += size
    return batches


def packed_micro_batches(length_B: Tensor, max_tokens: int) -> list[Tensor]:
    """Row indices whose lengths add up to at most `max_tokens` (one row at least): first fit, longest first.

    First-fit decreasing needs at most 11/9 of the fewest bins there could be, and 6/9 of one (Dósa 2007).
    """
    bins: list[list[int]] = []
    free: list[int] = []
    for row in torch.argsort(length_B, descending=True, stable=True).tolist():
        length = int(length_B[row])
        place = next((i for i, space in enumerate(free) if space >= length), None)
        if place is None:
            bins.append([])
            free.append(max_tokens)
            place = len(bins) - 1
        bins[place].append(row)
        free[place] -= length
    return [torch.tensor(rows) for rows in bins]
