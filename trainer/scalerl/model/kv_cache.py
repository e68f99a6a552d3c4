"""Cached keys and values of the rows a generator decodes, whatever the policy.

New weights do not touch it: what old weights cached stays as they wrote it (PipelineRL).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from scalerl.rollout import Prompt


@dataclass(frozen=True, kw_only=True)
class Prefill:
    """Prompts to cache, each once, and the rows that get a copy; the last token of a prompt is left to decoding."""

    tokens: Tensor
    """[P, W], right-padded: what a shorter prompt caches beyond its end is overwritten before it is ever seen."""
    rows: Tensor
    """Rows to write."""
    prompts: Tensor
    """Which of the P prompts each of those rows gets."""

    @classmethod
    def of(cls, new: dict[Prompt, list[int]], device: torch.device) -> "Prefill":
        """Each new prompt and the rows that it is copied to."""
        width = max(len(prompt.tokens) for prompt in new) - 1
        padded = [prompt.tokens[:-1] + (0,) * (width - len(prompt.tokens) + 1) for prompt in new]
        return cls(
            tokens=torch.tensor(padded, dtype=torch.int64, device=device).view(len(new), width),
            rows=torch.tensor([row for rows in new.values() for row in rows], device=device),
            prompts=torch.tensor([i for i, rows in enumerate(new.values()) for _ in rows], device=device),
        )


class KVCache(ABC):
    """Keys and values [layers, S, heads, 2, positions, D] of S rows; active rows are the first ones."""

    def __init__(
        self, *, layers: int, slots: int, heads: int, positions: int, head_size: int, device: torch.device
    ) -> None:
        self.positions = positions
        self.kv = torch.zeros(layers, slots, heads, 2, positions, head_size, device=device)

    @abstractmethod
    def logits(self, tokens_n: Tensor, position_n: Tensor, prefill: Prefill | None) -> Tensor:
        """Logits [n, V] after one more token of each of the first n rows, which stands at `position_n`.

        Keys and values of these tokens and of the prompts to prefill are cached on the way.
        """

    def move(self, target: list[int], source: list[int]) -> None:
        """Copy rows."""
        self.kv[:, target] = self.kv[:, source]
