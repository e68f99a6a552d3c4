"""A policy's weights in memory that all processes see, kept twice so that a half-written set is never read.

Publication n is written to place n mod 2, then announced by a message; a generator copies it when it reads the message
and names n in its next report. Place n mod 2 may be written once every generator has reported n - 2 or later: whoever
reads then, reads the other place. The messages order the accesses, so there is no lock that a killed process could
leave behind.
"""

import math

import torch
from torch import Tensor

from scalerl.weights.hugging_face import Weights

ALIGNMENT = 16
"""Bytes; every tensor starts at a multiple, as its type needs."""
PLACES = 2


class SharedMemoryChannel:
    """Two places for weights of fixed names, shapes and types, each with its version; both are in host memory.

    Handed to a process that is being started, it is the same memory there.
    """

    def __init__(self, weights: Weights) -> None:
        self._layout: list[tuple[str, torch.dtype, torch.Size, int]] = []
        offset = 0
        for name, tensor in weights.items():
            self._layout.append((name, tensor.dtype, tensor.shape, offset))
            offset += math.ceil(tensor.numel() * tensor.element_size() / ALIGNMENT) * ALIGNMENT
        self._bytes = torch.zeros((PLACES, offset), dtype=torch.uint8).share_memory_()
        self._versions = torch.full((PLACES,), -1, dtype=torch.int64).share_memory_()

    def publish(self, publication: int, version: int, weights: Weights) -> None:
        """Copy the weights to the publication's place."""
        place = publication % PLACES
        for name, view in self._views(place).items():
            view.copy_(weights[name].detach())
        self._versions[place] = version

    def receive(self, publication: int) -> tuple[int, Weights]:
        """Version and weights of a publication; they are views: copy them before reporting it."""
        place = publication % PLACES
        return int(self._versions[place]), self._views(place)

    def close(self) -> None:
        """Nothing to do: the memory is released with the last process that holds it."""

    def _views(self, place: int) -> dict[str, Tensor]:
        return {
            name: self._bytes[place, offset : offset + math.prod(shape) * dtype.itemsize].view(dtype).view(shape)
            for name, dtype, shape, offset in self._layout
        }
