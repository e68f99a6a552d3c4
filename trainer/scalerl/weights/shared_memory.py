"""A policy's weights in memory shared by all processes of a node, in two places, so that no half-written set is read.

Publication n is written to place n mod 2 and then announced by a message. A generator copies it when it reads the
message, and names n in its next report. Place n mod 2 may be overwritten once every generator has reported n - 2 or
later: any reader then reads the other place. The messages order the accesses, so there is no lock that a killed process
could leave behind. Each tensor is sealed after it is written, with publication, version and checksum, so tensors that a
dead rank left half-written are rejected.
"""

import math
import mmap
import os
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scalerl.weights.hugging_face import Weights, some_of
from scalerl.weights.manifest import checksum, forms_of, refuse_damaged, refuse_other_version
from scalerl.weights.node_memory import Extent, NodeMemory, Share, grow
from scalerl.weights.store import UnusablePublication, WeightStore

ALIGNMENT = 16
"""Alignment of every tensor in bytes."""
PLACES = 2
SEAL = 3
"""Number of 64-bit integers in a tensor's seal."""
OPEN = 0
"""Publication number of a tensor that is being written, or was never written; publications count from 1."""
NODE_MEMORY = "SCALERL_NODE_MEMORY"
"""Variable that names the memory of a node without the process that made the store."""


class SharedMemoryStore(WeightStore):
    """Two places for one model's weights, in host memory.

    Unpickled in another process, it maps the memory of that process's node, as long as the node's keeper lives.
    """

    def __init__(self, weights: Weights, memory: NodeMemory | None = None) -> None:
        """Use the memory of this node, or new memory."""
        self._forms = forms_of(weights)
        self._extents: dict[str, Extent] = {}
        """Where each tensor lies in a place."""
        self._size = 0
        for name, form in self._forms.items():
            length = math.ceil(form.nbytes / ALIGNMENT) * ALIGNMENT
            self._extents[name] = self._size, length
            self._size += length
        self._seals_from = PLACES * self._size
        self._total = self._seals_from + PLACES * 8 * SEAL * len(self._forms)
        self._memory = memory or NodeMemory()
        self._where = self._memory.where
        self._map()

    def _map(self) -> None:
        with Path(self._where).open("r+b") as file:
            grow(file.fileno(), self._total)
            everything = torch.frombuffer(mmap.mmap(file.fileno(), self._total), dtype=torch.uint8)
        self._bytes = everything[: self._seals_from].view(PLACES, self._size)
        self._seals = everything[self._seals_from :].view(torch.int64).view(PLACES, len(self._forms), SEAL)
        """Publication, version and checksum of each tensor."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_memory", "_bytes", "_seals")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._where = os.environ.get(NODE_MEMORY, self._where)
        self._map()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tensors, in the order in which they are published."""
        return tuple(self._forms)

    def share(self, publication: int, names: Container[str]) -> Share:
        """The tensors of a publication with these names, where they lie on every node."""
        place, seal = publication % PLACES, 8 * SEAL
        chosen = [(number, *self._extents[name]) for number, name in enumerate(self._forms) if name in names]
        first_seal = self._seals_from + place * len(self._forms) * seal
        return Share(
            size=self._total,
            tensors=_joined((place * self._size + offset, length) for _, offset, length in chosen),
            seals=_joined((first_seal + number * seal, seal) for number, _, _ in chosen),
        )

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
        form, (offset, _) = self._forms[name], self._extents[name]
        return self._bytes[place, offset : offset + form.nbytes].view(form.dtype).view(form.shape)


def _joined(spans: Iterable[Extent]) -> tuple[Extent, ...]:
    """Spans in order, neighbours as one."""
    found: list[Extent] = []
    for offset, length in spans:
        if found and sum(found[-1]) == offset:
            found[-1] = found[-1][0], found[-1][1] + length
        else:
            found.append((offset, length))
    return tuple(found)
