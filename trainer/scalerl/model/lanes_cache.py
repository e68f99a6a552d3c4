"""A cache that keeps its rows one by one, or side by side for compiled steps."""

import numpy as np
import torch
from torch import Tensor

from scalerl.model.kernels.lanes import LANES, QUAD, side_by_side, single_rows, whole_blocks, whole_positions
from scalerl.model.kv_cache import KVCache


class LanesCache(KVCache):
    """Rows one by one at first; `lay_out` changes it. In lanes `kv` is as `scalerl.model.kernels.lanes` says."""

    is_in_lanes = False

    def lay_out(self, *, in_lanes: bool) -> None:
        """Keep rows side by side, or one by one; what is cached stays."""
        if in_lanes == self.is_in_lanes:
            return
        rows, _, _, reach = self.kv[0].shape[:4]
        kept = self.taken(min(rows * (LANES if self.is_in_lanes else 1), self.slots), min(reach, self.positions))
        self.is_in_lanes = in_lanes
        numbers = (-(-self.head_size // QUAD), LANES * QUAD) if in_lanes else (self.head_size,)
        self.kv = [layer.new_zeros(0, layer.shape[1], 2, 0, *numbers) for layer in self.kv]
        self.put(kept)

    def in_memory(self, rows: int, reach: int) -> tuple[int, int]:
        return (whole_blocks(rows), whole_positions(reach)) if self.is_in_lanes else (rows, reach)

    def taken(self, rows: int, reach: int) -> Tensor:
        if not self.is_in_lanes:
            return super().taken(rows, reach)
        blocks = whole_blocks(rows)
        return torch.stack([single_rows(layer[:blocks, :, :, :reach], self.head_size)[:rows] for layer in self.kv])

    def put(self, taken: Tensor) -> None:
        if not self.is_in_lanes:
            super().put(taken)
            return
        _, rows, _, _, reach, _ = taken.shape
        self.reserve(rows, reach)
        for layer, of_layer in zip(self.kv, taken, strict=True):
            layer[: whole_blocks(rows), :, :, :reach] = side_by_side(of_layer)

    def move(self, target: list[int], source: list[int]) -> None:
        if not self.is_in_lanes:
            super().move(target, source)
            return
        from scalerl.model.kernels.cache import as_numbers, move_rows  # numba takes a quarter of a second

        for layer in self.kv:
            move_rows(as_numbers(layer), np.array(target), np.array(source))
