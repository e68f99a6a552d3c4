"""Gives a `transformers` model's attention layers access to our cache: what they write, and what they may attend to."""

from typing import Any

import torch
from torch import Tensor
from transformers import Cache

from scalerl.model.kv_cache import Prefill

Pair = tuple[Tensor, Tensor]
CachedSizes = tuple[int, int, int]
"""Key-value heads, size of a key, size of a value."""


class Recorder(Cache):
    """Records the sizes of keys and values by layer, and caches nothing."""

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.sizes: dict[int, CachedSizes] = {}

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> Pair:
        """Record the sizes and return the arguments."""
        self.sizes[layer_idx] = (key_states.shape[1], key_states.shape[-1], value_states.shape[-1])
        return key_states, value_states


class RowWriter(Cache):
    """Writes one token per row, each at its own position."""

    def __init__(self, kv: list[Tensor], position_n: Tensor, reach: int) -> None:
        super().__init__(layers=[])
        self.kv, self.position_n, self.reach = kv, position_n, reach
        self.row_n = torch.arange(len(position_n), device=position_n.device)

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> Pair:
        """Cache [n, heads, 1, D] and return what each row may attend to, [n, heads, reach, D]."""
        layer = self.kv[layer_idx]
        for which, new in enumerate((key_states, value_states)):
            layer[self.row_n, :, which, self.position_n, : new.shape[-1]] = new[:, :, 0].to(layer.dtype)
        seen = layer[: len(self.row_n), :, :, : self.reach]
        return seen[:, :, 0, :, : key_states.shape[-1]], seen[:, :, 1, :, : value_states.shape[-1]]


class RowExtender(Cache):
    """Writes tokens that continue their rows, each at its own position; a negative position is padding."""

    def __init__(self, kv: list[Tensor], prefill: Prefill, reach: int) -> None:
        super().__init__(layers=[])
        assert prefill.position is not None
        self.kv, self.rows, self.reach = kv, prefill.rows, reach
        self.one, self.token = (prefill.position >= 0).nonzero(as_tuple=True)
        self.position = prefill.position[self.one, self.token]

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> Pair:
        """Cache [P, heads, W, D] and return what each row may attend to, [P, heads, reach, D]."""
        layer = self.kv[layer_idx]
        for which, new in enumerate((key_states, value_states)):
            written = new[self.one, :, self.token].to(layer.dtype)
            layer[self.rows[self.one], :, which, self.position, : new.shape[-1]] = written
        seen = layer[self.rows, :, :, : self.reach]
        return seen[:, :, 0, :, : key_states.shape[-1]], seen[:, :, 1, :, : value_states.shape[-1]]


class PromptWriter(Cache):
    """Writes whole prompts and copies each to its rows."""

    def __init__(self, kv: list[Tensor], prefill: Prefill) -> None:
        super().__init__(layers=[])
        self.kv, self.prefill = kv, prefill

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> Pair:
        """Cache [P, heads, W, D] and return the arguments, since a prompt attends to itself."""
        rows, prompts, layer = self.prefill.rows, self.prefill.prompts, self.kv[layer_idx]
        for which, new in enumerate((key_states, value_states)):
            layer[rows, :, which, : new.shape[2], : new.shape[-1]] = new[prompts].to(layer.dtype)
        return key_states, value_states
