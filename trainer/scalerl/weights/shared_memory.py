"""A policy's weights in memory shared by all processes, stored twice so that a half-written set is never read.

Publication n is written to place n mod 2 and then announced by a message. A generator copies it when it reads the
message, and names n in its next report. Place n mod 2 may be overwritten once every generator has reported n - 2 or
later: any reader then reads the other place. The messages order the accesses, so there is no lock that a killed process
could leave behind. Each tensor is sealed after it is written, with publication, version and checksum, so tensors that a
dead rank left half-written are rejected.
"""

import math
import mmap
import os
import weakref
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalerl.weights.hugging_face import Weights, some_of
from scalerl.weights.manifest import checksum, forms_of, refuse_damaged, refuse_other_version
from scalerl.weights.store import UnusablePublication

ALIGNMENT = 16
"""Alignment of every tensor in bytes."""
PLACES = 2
SEAL = 3
"""Number of integers in a tensor's seal."""
OPEN = -1
"""Publication number of a tensor that is being written."""


class SharedMemoryStore:
    """Two places for one model's weights, in host memory.

    Unpickled in another process of this machine, it maps the same memory, as long as the process that made it lives.
    The memory has no name that could outlive its processes.
    """

    def __init__(self, weights: Weights) -> None:
        self._forms = forms_of(weights)
        self._offsets: dict[str, int] = {}
        size = 0
        for name, form in self._forms.items():
            self._offsets[name] = size
            size += math.ceil(math.prod(form.shape) * form.dtype.itemsize / ALIGNMENT) * ALIGNMENT
        self._size = size
        descriptor = os.memfd_create("weights")
        weakref.finalize(self, os.close, descriptor)
        os.truncate(descriptor, PLACES * (size + 8 * SEAL * len(self._forms)))
        self._where = Path(f"/proc/{os.getpid()}/fd/{descriptor}")
        self._map()
        self._seals.fill_(OPEN)

    def _map(self) -> None:
        with self._where.open("r+b") as file:
            everything = torch.frombuffer(mmap.mmap(file.fileno(), 0), dtype=torch.uint8)
        self._bytes = everything[: PLACES * self._size].view(PLACES, self._size)
        self._seals = everything[PLACES * self._size :].view(torch.int64).view(PLACES, len(self._forms), SEAL)
        """Publication, version and checksum of each tensor."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_bytes", "_seals")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._map()

    def publish(self, publication: int, version: int, weights: Weights, *, rank: int = 0, ranks: int = 1) -> None:
        """Copy a rank's tensors to the publication's place and seal them."""
        place = publication % PLACES
        seals = dict(zip(self._forms, self._seals[place], strict=True))
        for name, tensor in weights.items():
            seals[name][0] = OPEN
            view = self._view(place, name)
            view.copy_(tensor.detach())
            seals[name][1:] = torch.tensor([version, checksum(view)])
            seals[name][0] = publication

    def fetch(self, publication: int, version: int) -> Weights:
        """Tensors of the publication, checked. They are views: copy them before reporting the publication."""
        place = publication % PLACES
        seals = dict(zip(self._forms, self._seals[place].tolist(), strict=True))
        newer = max(number for number, _, _ in seals.values())
        if newer > publication:
            raise UnusablePublication(f"publication {publication} is gone: overwritten by publication {newer}")
        if missing := [name for name, (number, _, _) in seals.items() if number != publication]:
            raise UnusablePublication(f"publication {publication} is incomplete: it lacks {some_of(missing)}")
        for _, found, _ in seals.values():
            refuse_other_version(publication, found, version)
        weights = {name: self._view(place, name) for name in self._forms}
        refuse_damaged(publication, weights, self._forms, {name: seal[2] for name, seal in seals.items()})
        return weights

    def close(self) -> None:
        """Do nothing: the memory is freed with the last process that holds it."""

    def _view(self, place: int, name: str) -> Tensor:
        form, offset = self._forms[name], self._offsets[name]
        end = offset + math.prod(form.shape) * form.dtype.itemsize
        return self._bytes[place, offset:end].view(form.dtype).view(form.shape)
