"""Sequences one after the other in a row instead of one a row: no product is spent on padding.

    lengths 2, 3                          sequence_N 0 0 1 1 1    position_N 0 1 0 1 2
    the same, both begin with one prompt
    of one token                          sequence_N 0 0 1 1      position_N 0 1 1 2

Positions start again with each sequence, and no sequence attends to another. What stands before any answer is the same
in all rollouts of a prompt, so it may be computed once for all of them: its hidden states, keys and values are theirs.


All of it is index arithmetic of the host; a device only gets the finished indices.
"""

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Packing:
    """Where each of the N tokens of a packed row stands in the right-padded [B, T]."""

    sequence_N: Tensor
    """Row of [B, T]."""
    position_N: Tensor
    """Column of [B, T], which is also the position in the sequence."""
    token_BT: Tensor
    """Which of the N tokens stands there; 0 where padding is."""
    sequence_M: Tensor
    """Row of [B, T] of each token that is predicted from those before it, row after row."""
    position_M: Tensor
    """Its column."""
    before_M: Tensor
    """Which of the N tokens stands before it."""
    shares_prompts: bool
    """Whether tokens may belong to several sequences."""
    host: "Packing | None" = None
    """The same on the host, if this one is elsewhere."""

    @classmethod
    def of(cls, length_B: Tensor) -> "Packing":
        """The packing of sequences of these lengths, in order; lengths and packing are on the host."""
        sequences = torch.arange(len(length_B), device=length_B.device)
        return cls._of(length_B, torch.ones_like(length_B), sequences)

    @classmethod
    def with_shared_prompts(cls, length_B: Tensor, prompt_B: Tensor, group_B: Tensor) -> "Packing":
        """The same, but sequences of one group share the first `prompt_B` tokens, which stand in its first sequence.

        Only answers, from column `prompt_B` on, are predicted.
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
        sequence_M, position_M = (valid_BT & (column_T >= from_B[:, None])).nonzero(as_tuple=True)
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
        """The same with its indices on `device`."""
        moved: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in moved.items():
            if isinstance(value, Tensor):
                moved[name] = value.to(device, non_blocking=True)
        return Packing(**{**moved, "host": self.host or self})

    def packed(self, padded: Tensor) -> Tensor:
        """[N, ...] of [B, T, ...]."""
        return padded[self.sequence_N, self.position_N]

    def padded(self, packed: Tensor) -> Tensor:
        """[B, T, ...] of [N, ...]; where padding is stands something that nothing may attend to."""
        # index_select: its gradient adds up rows far faster than that of indexing.
        return packed.index_select(0, self.token_BT.flatten()).unflatten(0, self.token_BT.shape)

    def predicted(self, padded: Tensor) -> Tensor:
        """Of [B, T, ...] what stands at each predicted token, [M, ...]."""
        return padded[self.sequence_M, self.position_M]

    def before(self, packed: Tensor) -> Tensor:
        """Of [N, ...] what stands before each predicted token, [M, ...]."""
        return packed.index_select(0, self.before_M)

    def laid_out(self, values: Tensor) -> Tensor:
        """[B, T] of one value for each predicted token, 0 elsewhere."""
        return values.new_zeros(self.token_BT.shape).index_put((self.sequence_M, self.position_M), values)

    def may_attend(self) -> Tensor:
        """Whether each token (row) may look at each other (column), [N, N]: itself and what its sequence has before."""
        token_N = torch.arange(len(self.position_N), device=self.position_N.device)
        of_my_sequence_NN = self.token_BT[self.sequence_N[:, None], self.position_N] == token_N
        return of_my_sequence_NN & (self.position_N <= self.position_N[:, None])


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
    return [torch.tensor(rows, device=length_B.device) for rows in bins]


def shared_micro_batches(length_B: Tensor, prompt_B: Tensor, group_B: Tensor, max_tokens: int) -> list[Tensor]:
    """The same where a prompt counts once for the rows of its group in one pass; groups that fit stay whole."""
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
