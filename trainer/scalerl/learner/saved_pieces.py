"""Tensors in pieces: each rank's part of a network, in files that any number of ranks can read again.

A piece is a slice of a flattened tensor, such as 12288 elements of `blocks.0.qkv` from 4096 on. All engines use these
pieces for ZeRO-2's moments and for ZeRO-3's and FSDP2's weights, so one engine can read what another wrote. Unlike in
`torch.distributed.checkpoint`, nothing is pickled and nothing is collective: a rank reads only its part.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from scalerl.learner.ranks import Ranks
from scalerl.model.policy import Policy

MOMENTS = ("exp_avg", "exp_avg_sq")
"""AdamW's moments, under its own names."""


@dataclass(frozen=True, kw_only=True)
class KeptPiece:
    """A rank's part of a tensor: `KeptPiece(kind="weights", name="policy.blocks.0.qkv", start=4096, values=...)`."""

    kind: str
    """`weights`, or the name of a moment."""
    name: str
    start: int
    values: Tensor
    """[n], any device."""


class TensorSource(Protocol):
    """Source of a network's weights, or of one of its moments, under the network's own names."""

    def __contains__(self, name: object) -> bool:
        """True if the source has this tensor."""
        ...

    def read(self, name: str, start: int, stop: int) -> Tensor:
        """Elements `start` to `stop` of the flattened tensor, shape [stop - start]."""
        ...


class InMemory:
    """A source of tensors in memory."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = tensors

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def read(self, name: str, start: int, stop: int) -> Tensor:
        """Slice of the flattened tensor; a view if it is contiguous."""
        return self.tensors[name].detach().reshape(-1)[start:stop]


def weights_of(network: nn.Module, *, with_fixed: bool = False) -> dict[str, Tensor]:
    """Parameters, and buffers that belong to the weights, by name; those never trained are included only
    `with_fixed`."""
    return {
        **dict(parameters_by_name(network, with_fixed=with_fixed)),
        **dict(kept_buffers(network, with_fixed=with_fixed)),
    }


def parameters_by_name(network: nn.Module, *, with_fixed: bool = False) -> list[tuple[str, nn.Parameter]]:
    """Parameters with names; those that training never changes are included only `with_fixed`."""
    fixed = set() if with_fixed else fixed_names(network)
    return [(name, parameter) for name, parameter in network.named_parameters() if name not in fixed]


def fixed_names(network: nn.Module) -> set[str]:
    """Names of the parameters that training never changes: those of a policy beside its adapter."""
    policies = [(name, module) for name, module in network.named_modules() if isinstance(module, Policy)]
    return {f"{above}.{name}" for above, policy in policies for name, _ in policy.fixed_parameters()}


def save_pieces(path: Path, pieces: Mapping[str, Iterable[KeptPiece]]) -> None:
    """Write the pieces of several networks, named like `policy/weights/policy.blocks.0.qkv`, with their starts."""
    tensors, starts = {}, {}
    for network, several in pieces.items():
        for piece in several:
            if piece.values.numel():
                place = f"{network}/{piece.kind}/{piece.name}"
                tensors[place] = piece.values.detach().cpu().contiguous()
                starts[place] = str(piece.start)
    save_file(tensors, path, metadata=starts)


class PieceFiles:
    """The files of all ranks, open as long as this object lives."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._pieces: dict[str, list[tuple[int, int, Any]]] = {}
        for path in paths:
            file = safe_open(path, framework="pt")
            for place, start in (file.metadata() or {}).items():
                piece = file.get_slice(place)
                begin, (length,) = int(start), piece.get_shape()
                self._pieces.setdefault(place, []).append((begin, begin + length, piece))

    def of(self, network: str, kind: str) -> "PieceSource":
        """Source of the weights or of one moment of a network."""
        prefix = f"{network}/{kind}/"
        return PieceSource(
            {place.removeprefix(prefix): found for place, found in self._pieces.items() if place.startswith(prefix)}
        )


class PieceSource:
    """A source of pieces from all ranks."""

    def __init__(self, pieces: Mapping[str, Sequence[tuple[int, int, Any]]]) -> None:
        self._pieces = pieces

    def __contains__(self, name: object) -> bool:
        return name in self._pieces

    def read(self, name: str, start: int, stop: int) -> Tensor:
        """Slice of the flattened tensor joined from overlapping pieces; raises ValueError if they leave a gap."""
        found, place = [], start
        for begin, end, piece in sorted(self._pieces[name], key=lambda one: one[:2]):
            if begin <= place < min(end, stop):
                found.append(piece[place - begin : min(end, stop) - begin])
                place = min(end, stop)
        if place < stop:
            raise ValueError(f"no rank kept elements {place} to {stop} of {name}")
        return torch.cat(found) if found else torch.empty(0)


def pieces_of_whole(tensors: Iterable[tuple[str, Tensor]], ranks: Ranks) -> Iterator[KeptPiece]:
    """This rank's slices of weights that all ranks have."""
    for name, tensor in tensors:
        start, stop = (tensor.numel() * index // ranks.world for index in (ranks.rank, ranks.rank + 1))
        yield KeptPiece(kind="weights", name=name, start=start, values=tensor.detach().reshape(-1)[start:stop])


def fill_whole(tensors: Iterable[tuple[str, Tensor]], source: TensorSource) -> None:
    """Copy tensors that are whole in this process from the source."""
    for name, tensor in tensors:
        tensor.copy_(source.read(name, 0, tensor.numel()).view(tensor.shape))


def by_layer(network: nn.Module, *, with_fixed: bool = False) -> Iterator[list[tuple[str, nn.Parameter]]]:
    """Parameters with names, grouped by layer; no more than one group is gathered at once."""
    layers: dict[str, list[tuple[str, nn.Parameter]]] = {}
    for name, parameter in parameters_by_name(network, with_fixed=with_fixed):
        head, _, tail = name.partition(".layers." if ".layers." in name else ".blocks.")
        layers.setdefault(f"{head} {tail.split('.')[0]}" if tail else name, []).append((name, parameter))
    yield from layers.values()


def kept_buffers(network: nn.Module, *, with_fixed: bool = False) -> Iterator[tuple[str, Tensor]]:
    """Buffers that belong to a network's weights; engines keep them whole on every rank. Those of a policy with an
    adapter never change, and are returned only `with_fixed`."""
    if not with_fixed and fixed_names(network):
        return
    state = network.state_dict(keep_vars=True)
    yield from ((name, buffer) for name, buffer in network.named_buffers() if name in state)
