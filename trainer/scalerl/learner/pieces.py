"""Tensors in pieces: what each rank keeps of a network, in files that any number of ranks reads again.

A piece is a run of numbers of a tensor in the order of its memory: `blocks.0.qkv` of 12288 numbers from place 4096 on.
Every engine cuts its tensors so, ZeRO-2's moments, ZeRO-3's and FSDP2's weights; so what one wrote another opens.
Nothing is pickled, unlike in `torch.distributed.checkpoint`, and nothing is collective: a rank reads what it keeps.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

MOMENTS = ("exp_avg", "exp_avg_sq")
"""AdamW's, by its own names."""


@dataclass(frozen=True, kw_only=True)
class KeptPiece:
    """`KeptPiece(kind="weights", name="policy.blocks.0.qkv", start=4096, values=...)`: a rank's part of a tensor."""

    kind: str
    """`weights`, or one of the moments."""
    name: str
    start: int
    values: Tensor
    """[n], any device."""


class TensorSource(Protocol):
    """Where a network's weights, or one of its moments, come from: tensors by the network's own names."""

    def __contains__(self, name: object) -> bool:
        """Whether it has this tensor."""
        ...

    def read(self, name: str, start: int, stop: int) -> Tensor:
        """Numbers `start` to `stop` of the tensor in the order of its memory, [stop - start]."""
        ...


class InMemory:
    """A source of tensors that are there."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = tensors

    def __contains__(self, name: object) -> bool:
        """Whether it has this tensor."""
        return name in self.tensors

    def read(self, name: str, start: int, stop: int) -> Tensor:
        """A view, where it is contiguous."""
        return self.tensors[name].detach().reshape(-1)[start:stop]


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Parameters, and buffers that belong to its weights, by name."""
    return dict(network.named_parameters()) | dict(kept_buffers(network))


def weights_in_memory(network: nn.Module) -> InMemory:
    """Those of a network that lies in this process."""
    return InMemory(weights_of(network))


def save_pieces(path: Path, pieces: Mapping[str, Iterable[KeptPiece]]) -> None:
    """Write the pieces of networks by name, as `policy/weights/policy.blocks.0.qkv`, and where each starts."""
    tensors, starts = {}, {}
    for network, several in pieces.items():
        for piece in several:
            if piece.values.numel():
                place = f"{network}/{piece.kind}/{piece.name}"
                tensors[place] = piece.values.detach().cpu().contiguous()
                starts[place] = str(piece.start)
    save_file(tensors, path, metadata=starts)


class PieceFiles:
    """The files of all ranks, open while the block runs."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths
        self._pieces: dict[str, list[tuple[int, int, Any]]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "PieceFiles":
        for path in self.paths:
            file = self._stack.enter_context(safe_open(path, framework="pt"))
            for place, start in (file.metadata() or {}).items():
                piece = file.get_slice(place)
                begin, (length,) = int(start), piece.get_shape()
                self._pieces.setdefault(place, []).append((begin, begin + length, piece))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pieces.clear()
        self._stack.close()

    def of(self, network: str, kind: str) -> "PieceSource":
        """Weights or a moment of one network."""
        prefix = f"{network}/{kind}/"
        return PieceSource(
            {place.removeprefix(prefix): found for place, found in self._pieces.items() if place.startswith(prefix)}
        )


class PieceSource:
    """A source of pieces, whichever rank kept them."""

    def __init__(self, pieces: Mapping[str, Sequence[tuple[int, int, Any]]]) -> None:
        self._pieces = pieces

    def __contains__(self, name: object) -> bool:
        """Whether any rank kept a piece of it."""
        return name in self._pieces

    def read(self, name: str, start: int, stop: int) -> Tensor:
        """Put together from those that overlap; ValueError where they leave a gap."""
        found, place = [], start
        for begin, end, piece in sorted(self._pieces[name], key=lambda one: one[:2]):
            if begin <= place < min(end, stop):
                found.append(piece[place - begin : min(end, stop) - begin])
                place = min(end, stop)
        if place < stop:
            raise ValueError(f"no rank has kept numbers {place} to {stop} of {name}")
        return torch.cat(found) if found else torch.empty(0)


def piece_of_whole(kind: str, name: str, tensor: Tensor, rank: int, world: int) -> KeptPiece:
    """What one rank writes of a tensor that all of them have."""
    start, stop = (tensor.numel() * index // world for index in (rank, rank + 1))
    return KeptPiece(kind=kind, name=name, start=start, values=tensor.detach().reshape(-1)[start:stop])


def by_layer(network: nn.Module) -> Iterator[list[tuple[str, nn.Parameter]]]:
    """Parameters by name, those of one layer together: the most that are gathered at once."""
    layers: dict[str, list[tuple[str, nn.Parameter]]] = {}
    for name, parameter in network.named_parameters():
        head, _, tail = name.partition(".layers." if ".layers." in name else ".blocks.")
        layers.setdefault(f"{head} {tail.split('.')[0]}" if tail else name, []).append((name, parameter))
    yield from layers.values()


def kept_buffers(network: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Buffers that belong to a network's weights; engines keep them whole on every rank."""
    state = network.state_dict(keep_vars=True)
    yield from ((name, buffer) for name, buffer in network.named_buffers() if name in state)
