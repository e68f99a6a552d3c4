"""Cached keys and values of the rows that a generator decodes, for any policy.

New weights leave the cache as it is: entries of old weights are kept (PipelineRL).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scalerl.rollout import Prompt

SMALL_CACHE_BYTES = 2**26
"""Largest cache in bytes that is allocated in one piece."""
ROWS, POSITIONS = 16, 64
"""Rows and positions by which a larger cache grows."""


@dataclass(frozen=True, kw_only=True)
class Prefill:
    """Prompts to cache once each, and the rows that get a copy; decoding handles the last token of a prompt."""

    tokens: Tensor
    """[P, W], right-padded; decoding overwrites the padding that a shorter prompt caches before any token sees it."""
    rows: Tensor
    """Rows to write."""
    prompts: Tensor
    """Index of the prompt that each of those rows gets."""
    position: Tensor | None = None
    """[P, W] places of tokens that continue what their row has cached, the row's number being that of `rows`; -1 for
    padding. None for whole prompts."""

    @classmethod
    def of(cls, new: dict[Prompt, list[int]], device: torch.device) -> "Prefill":
        """Prefill of each new prompt into its rows."""
        width = max(len(prompt.tokens) for prompt in new) - 1
        padded = [prompt.tokens[:-1] + (0,) * (width - len(prompt.tokens) + 1) for prompt in new]
        return cls(
            tokens=torch.tensor(padded, dtype=torch.int64, device=device).view(len(new), width),
            rows=torch.tensor([row for rows in new.values() for row in rows], device=device),
            prompts=torch.tensor([i for i, rows in enumerate(new.values()) for _ in rows], device=device),
        )

    @classmethod
    def after(cls, new: dict[int, tuple[int, NDArray[np.int64]]], device: torch.device) -> "Prefill":
        """Prefill of rows that have this many positions cached with these tokens, the last of which is decoded."""
        width = max(len(tokens) for _, tokens in new.values()) - 1
        fresh, position = np.zeros((len(new), width), dtype=np.int64), np.full((len(new), width), -1)
        for i, (have, tokens) in enumerate(new.values()):
            fresh[i, : len(tokens) - 1] = tokens[:-1]
            position[i, : len(tokens) - 1] = np.arange(have, have + len(tokens) - 1)
        return cls(
            tokens=torch.from_numpy(fresh).to(device),
            rows=torch.tensor(list(new), device=device),
            prompts=torch.arange(len(new), device=device),
            position=torch.from_numpy(position).to(device),
        )

    def parts(self, max_tokens: int) -> "Iterator[Prefill]":
        """Split into parts of at most `max_tokens` tokens, but at least one prompt each."""
        size = max(1, max_tokens // max(1, self.tokens.shape[1]))
        for start in range(0, len(self.tokens), size):
            here = (self.prompts >= start) & (self.prompts < start + size)
            yield Prefill(
                tokens=self.tokens[start : start + size],
                rows=self.rows[here],
                prompts=self.prompts[here] - start,
                position=None if self.position is None else self.position[start : start + size],
            )


class KVCache(ABC):
    """Keys and values of up to `slots` rows of up to `positions` tokens; active rows come first.

    Memory grows to the largest number of rows and positions used so far, in the precision of the products that read it.
    `kv` holds [rows, heads, 2, positions, D] per layer.
    """

    keeps_idle_rows = True
    """True if decoding changes nothing in rows behind the active ones."""

    def __init__(
        self,
        *,
        layers: int,
        slots: int,
        heads: int,
        positions: int,
        head_size: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.slots, self.positions, self.head_size = slots, positions, head_size
        self.kv = [torch.zeros(0, heads, 2, 0, head_size, dtype=dtype, device=device) for _ in range(layers)]
        is_small = layers * slots * heads * 2 * positions * head_size * dtype.itemsize <= SMALL_CACHE_BYTES
        self._blocks = (slots, self.positions) if is_small else (ROWS, POSITIONS)

    @abstractmethod
    def logits(self, tokens_n: Tensor, position_n: Tensor, *prefills: Prefill) -> Tensor:
        """Logits [n, V] after one more token in each of the first n rows, at `position_n` (on the host).

        Also caches keys and values of these tokens and of those in `prefills`.
        """

    def in_memory(self, rows: int, reach: int) -> tuple[int, int]:
        """The sizes of `kv` that hold so many rows and positions."""
        return rows, reach

    def reserve(self, rows: int, reach: int) -> None:
        """Make room for this many rows and positions, keeping what is cached."""
        (have_rows, _, _, have_reach, *_), (rows, reach) = self.kv[0].shape, self.in_memory(rows, reach)
        if rows <= have_rows and reach <= have_reach:
            return
        blocks, most = self.in_memory(*self._blocks), self.in_memory(self.slots, self.positions)
        rows = room(rows, have_rows, block=blocks[0], most=most[0])
        reach = room(reach, have_reach, block=blocks[1], most=most[1])
        with torch.inference_mode(False):  # a checkpoint is loaded into the cache outside of inference
            for layer, old in enumerate(self.kv):  # one by one, so that only one layer is in memory twice
                self.kv[layer] = old.new_zeros(rows, old.shape[1], 2, reach, *old.shape[4:])
                self.kv[layer][:have_rows, :, :, :have_reach] = old

    def release(self) -> None:
        """Free the memory and empty the cache."""
        self.kv = [layer.new_zeros(0, layer.shape[1], 2, 0, *layer.shape[4:]) for layer in self.kv]

    def taken(self, rows: int, reach: int) -> Tensor:
        """A copy of the first rows and positions of all layers, [layers, rows, heads, 2, reach, D]."""
        return torch.stack([layer[:rows, :, :, :reach] for layer in self.kv])

    def put(self, taken: Tensor) -> None:
        """Fill the first rows and positions from the result of `taken`."""
        _, rows, _, _, reach, _ = taken.shape
        self.reserve(rows, reach)
        for layer, of_layer in zip(self.kv, taken, strict=True):
            layer[:rows, :, :, :reach] = of_layer

    def move(self, target: list[int], source: list[int]) -> None:
        """Copy `source` rows to `target` rows."""
        for layer in self.kv:
            layer[target] = layer[source]


def room(needed: int, have: int, *, block: int, most: int) -> int:
    """Size to allocate: whole blocks, at least a quarter more than before so that growth is rare, at most `most`."""
    return have if needed <= have else min(most, math.ceil(max(needed, have * 5 // 4) / block) * block)
