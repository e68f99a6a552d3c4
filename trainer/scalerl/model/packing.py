"""Sequences concatenated into one row instead of one sequence per row, so that no product is spent on padding.

    lengths 2, 3                          sequence_N 0 0 1 1 1    position_N 0 1 0 1 2
    the same, with a shared prompt
    of one token                          sequence_N 0 0 1 1      position_N 0 1 1 2

Positions restart with each sequence, and no sequence attends to another. The tokens before an answer are the same in
all rollouts of a prompt, so their hidden states, keys and values may be computed once and shared.

The host does all index arithmetic; a device only gets the finished indices.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Packing:
    """Index maps between the N tokens of a packed row and right-padded [B, T]."""

    sequence_N: Tensor
    """Row in [B, T]."""
    position_N: Tensor
    """Column in [B, T], which is also the position in the sequence."""
    token_BT: Tensor
    """Index of the packed token; 0 for padding."""
    sequence_M: Tensor
    """Row in [B, T] of each predicted token, row after row."""
    position_M: Tensor
    """Column of each predicted token."""
    before_M: Tensor
    """Packed index of the token before each predicted token."""
    shares_prompts: bool
    """True if tokens may belong to several sequences."""
    host: "Packing | None" = None
    """Copy of this packing on the host, if this one is on a device."""

    @classmethod
    def of(cls, length_B: Tensor) -> "Packing":
        """Packing of sequences of these lengths, in order; both are on the host."""
        sequences = torch.arange(len(length_B), device=length_B.device)
        return cls._of(length_B, torch.ones_like(length_B), sequences)

    @classmethod
    def with_shared_prompts(cls, length_B: Tensor, prompt_B: Tensor, group_B: Tensor) -> "Packing":
        """Packing whose groups share the first `prompt_B` tokens, stored in the first sequence of the group.

        Only answers are predicted, from column `prompt_B` on.
        """
        same_BB = group_B[:, None] == group_B
        return cls._of(length_B, prompt_B, same_BB.int().argmax(dim=1))

    @classmethod
    def _of(cls, length_B: Tensor, from_B: Tensor, first_B: Tensor) -> "Packing":
        device = length_B.device
        column_T = torch.arange(int(length_B.max()), device=device)
        valid_BT = column_T < length_B[:, None]
        is_shared_BT = (column_T < from_B[:, None]) & (first_B != torch.arange(len(length_B), device=device))[:, None]
        own_BT = valid_BT & ~is_shared_BT
        sequence_N, position_N = own_BT.nonzero(as_tuple=True)
        token_BT = torch.zeros_like(own_BT, dtype=torch.long)
        token_BT[sequence_N, position_N] = torch.arange(len(sequence_N), device=device)
        token_BT = torch.where(is_shared_BT, token_BT[first_B], token_BT)
        # Nothing predicts a first token: of a sequence without a prompt, it was given.
        sequence_M, position_M = (valid_BT & (column_T >= from_B[:, None].clamp(min=1))).nonzero(as_tuple=True)
        return cls(
            sequence_N=sequence_N,
            position_N=position_N,
            token_BT=token_BT,
            sequence_M=sequence_M,
            position_M=position_M,
            before_M=token_BT[sequence_M, position_M - 1],
            shares_prompts=bool((from_B > 1).any()),
        )

    def to(self, device: torch.device) -> "Packing":
        """This packing with its indices on `device`."""
        there = {name: one.to(device, non_blocking=True) for name, one in vars(self).items() if isinstance(one, Tensor)}
        return replace(self, host=self.host or self, **there)

    def packed(self, padded: Tensor) -> Tensor:
        """[N, ...] from [B, T, ...]."""
        return padded[self.sequence_N, self.position_N]

    def padded(self, packed: Tensor) -> Tensor:
        """[B, T, ...] from [N, ...]; padding holds arbitrary values that must not be attended to."""
        # index_select: its gradient accumulates rows far faster than that of indexing.
        return packed.index_select(0, self.token_BT.flatten()).unflatten(0, self.token_BT.shape)

    def predicted(self, padded: Tensor) -> Tensor:
        """Entries of [B, T, ...] at each predicted token, [M, ...]."""
        return padded[self.sequence_M, self.position_M]

    def before(self, packed: Tensor) -> Tensor:
        """Entries of [N, ...] just before each predicted token, [M, ...]."""
        return packed.index_select(0, self.before_M)

    def laid_out(self, values: Tensor) -> Tensor:
        """[B, T] with one value per predicted token, 0 elsewhere."""
        return values.new_zeros(self.token_BT.shape).index_put((self.sequence_M, self.position_M), values)

    def may_attend(self) -> Tensor:
        """True if a token (row) may attend to another (column), [N, N]: itself and earlier tokens of its sequence."""
        token_N = torch.arange(len(self.position_N), device=self.position_N.device)
        of_my_sequence_NN = self.token_BT[self.sequence_N[:, None], self.position_N] == token_N
        return of_my_sequence_NN & (self.position_N <= self.position_N[:, None])


def padded_micro_batches(length_B: Tensor, max_tokens: int) -> list[Tensor]:
    """Row indices, longest rows first, with rows x longest row at most `max_tokens` (at least one row)."""
    order = torch.argsort(length_B, descending=True, stable=True)
    batches, start = [], 0
    while start < len(order):
        size = max(1, max_tokens // int(length_B[order[start]]))
        batches.append(order[start : start + size])
        start += size
    return batches


def packed_micro_batches(length_B: Tensor, max_tokens: int) -> list[Tensor]:
    """Row indices whose lengths add up to at most `max_tokens` (at least one row): first-fit decreasing.

    First-fit decreasing needs at most 11/9 of the optimal number of bins, plus 6/9 (Dósa 2007).
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
    return [torch.tensor(rows, device=length_B.device) for rows in bins]


def shared_micro_batches(length_B: Tensor, prompt_B: Tensor, group_B: Tensor, max_tokens: int) -> list[Tensor]:
    """Packed micro-batches that count a shared prompt once per pass; groups that fit stay whole."""
    pieces: list[tuple[int, list[int]]] = []
    for group in group_B.unique().tolist():
        rows = (group_B == group).nonzero().flatten().tolist()
        prompt = int(prompt_B[rows[0]])
        size, piece = prompt, []
        for row in rows:
            answer = int(length_B[row]) - prompt
            if piece and size + answer > max_tokens:
                pieces.append((size, piece))
                size, piece = prompt, []
            piece.append(row)
            size += answer
        pieces.append((size, piece))
    device = length_B.device
    sizes = torch.tensor([size for size, _ in pieces], device=device)
    return [
        torch.tensor([row for i in chosen.tolist() for row in pieces[i][1]], device=device)
        for chosen in packed_micro_batches(sizes, max_tokens)
    ]
