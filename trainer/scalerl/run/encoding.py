"""A run's state as JSON, tensors and arrays, and back. The only classes allowed are those of `RECORDS`.

JSON holds plain values as they are. Other values become an object with one key that starts with `$`:

    {"$tuple": [1, 2]}                     a tuple
    {"$pairs": [[17, ...], ...]}           a mapping whose keys are not all strings
    {"$tensor": "cluster/learner/policy/norm"}    a tensor, by name
    {"$near": ["cluster/learner/policy/norm", "cluster/generator/weights/norm"]}    the same, as distance
    {"$array": ["int32", 40, [7]]}         a NumPy array of shape [7], from place 40 of all numbers of that type
    {"$prompt": ["k_smallest", "3:k9a2"]}  a training prompt of the task, by task and id
    {"$Request": {"prompt": ..., ...}}     a dataclass, by field

Tensors with equal content are stored once, under the name of the first. Weights of generators and of publications under
way are the learner's of some steps ago: nearly all of their bits, read as integers, are within 2^15 of the learner's.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scalerl.cluster.cluster import Assembly
from scalerl.environments.endpoint import ChatAnswer, ChatRequest
from scalerl.environments.hosting import Played
from scalerl.environments.programs import AgentEpisode, Asking, Exchange
from scalerl.environments.protocol import Reply, Start
from scalerl.generator.conversation import Conversation, InProgress
from scalerl.generator.request import Request
from scalerl.prompts.pool import key
from scalerl.rollout import Episode, Group, Prompt, Rollout, Turn

RECORDS: dict[str, type] = {
    one.__name__: one
    for one in (
        Assembly,
        AgentEpisode,
        Asking,
        ChatAnswer,
        ChatRequest,
        Conversation,
        Episode,
        Exchange,
        Group,
        InProgress,
        Played,
        Reply,
        Request,
        Rollout,
        Start,
        Turn,
    )
}
"""Records that may be in flight when a checkpoint is written."""


@dataclass(kw_only=True)
class Encoded:
    """A state in three parts."""

    tree: Any = None
    """The part stored as JSON."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    """Tensors by name, on the CPU, contiguous, no two in the same memory."""
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    """Arrays by type: all numbers of the type, one after another."""


def encode(state: Any, near: Mapping[str, Tensor] | None = None) -> Encoded:
    """Split the state into three parts; TypeError names the place of a value that cannot be encoded.

    Tensors of a name in `near` are stored as their distance from that tensor, if it comes before them in the state.
    """
    encoder = _Encoder(near or {})
    tree = encoder.encode(state, "")
    return Encoded(
        tree=tree,
        tensors=encoder.tensors,
        arrays={name: np.concatenate(parts) for name, parts in encoder.parts.items()},
    )


def decode(encoded: Encoded, prompts: Iterable[Prompt]) -> Any:
    """Rebuild the state, each tensor in its own memory; the state may refer to `prompts`.

    ValueError names a prompt that is not among them.
    """
    known = {key(prompt): prompt for prompt in prompts}

    def decoded(tree: Any) -> Any:
        match tree:
            case list():
                return [decoded(part) for part in tree]
            case {"$tuple": parts}:
                return tuple(decoded(part) for part in parts)
            case {"$pairs": pairs}:
                return {decoded(name): decoded(part) for name, part in pairs}
            case {"$tensor": name}:
                return encoded.tensors[name].clone()
            case {"$near": [base, name]}:
                distance_N, far_M, values_M = (encoded.tensors[name + part] for part in NEAR_PARTS)
                return at_distance(distance_N, far_M, values_M, encoded.tensors[base])
            case {"$array": [name, start, shape]}:
                return encoded.arrays[name][start : start + math.prod(shape)].reshape(shape).copy()
            case {"$prompt": [task, prompt]}:
                if (task, prompt) not in known:
                    raise ValueError(f"the task {task!r} has no training prompt {prompt!r}")
                return known[task, prompt]
            case dict():
                parts = {name: decoded(part) for name, part in tree.items()}
                record = next((name for name in parts if name.startswith("$")), None)
                return parts if record is None else RECORDS[record[1:]](**parts[record])
        return tree

    return decoded(encoded.tree)


DISTANCE = "/distance"
NEAR_PARTS = (DISTANCE, "/far", "/values")
"""Parts of a tensor near another: distances, and the places and values of the elements that are too far."""
MOST_FAR = 0.2
"""Largest share of elements that may be too far; each of them takes 8 or 12 bytes more than the 2 of its distance."""


def distance(tensor: Tensor, base: Tensor) -> tuple[Tensor, Tensor, Tensor] | None:
    """A float32 tensor as the int16 distance of its bits from those of `base`, [n], with the places and values
    of the elements that are farther away; None if these are too many, or the tensors differ in form."""
    if tensor.dtype != torch.float32 or base.dtype != torch.float32 or tensor.shape != base.shape:
        return None
    bits_N, base_N = tensor.reshape(-1).view(torch.int32), base.reshape(-1).view(torch.int32)
    distance_N = bits_N - base_N  # modulo 2^32, and so is the way back
    short_N = distance_N.to(torch.int16)
    far_M = (short_N != distance_N).nonzero().flatten()
    if len(far_M) > MOST_FAR * max(1, len(bits_N)):
        return None
    places_M = far_M.to(torch.int32) if len(bits_N) <= torch.iinfo(torch.int32).max else far_M
    return short_N, places_M, tensor.reshape(-1)[far_M]


def at_distance(distance_N: Tensor, far_M: Tensor, values_M: Tensor, base: Tensor) -> Tensor:
    """The inverse of `distance`: the tensor, to the bit."""
    bits_N = base.reshape(-1).view(torch.int32) + distance_N
    bits_N[far_M.long()] = values_M.view(torch.int32)
    return bits_N.view(torch.float32).view(base.shape)


class _Encoder:
    """The tensors and arrays collected so far."""

    def __init__(self, near: Mapping[str, Tensor]) -> None:
        self.near = near
        self.tensors: dict[str, Tensor] = {}
        self.parts: dict[str, list[np.ndarray]] = {}
        self._names: dict[tuple[torch.dtype, torch.Size, bytes], str] = {}
        self._used: dict[str, int] = {}
        self._bases: dict[str, str] = {}
        self._base_of: dict[str, str] = {}
        """Base from which the distance of the tensor of a name is stored."""

    def encode(self, value: Any, place: str) -> Any:
        match value:
            case None | bool() | int() | float() | str():
                return value
            case Prompt():
                return {"$prompt": list(key(value))}
            case Tensor():
                return self._tensor(value, place)
            case np.ndarray():
                return {"$array": self._array(value)}
            case list():
                return self._items(value, place)
            case tuple():
                return {"$tuple": self._items(value, place)}
            case Mapping() if all(isinstance(name, str) and not name.startswith("$") for name in value):
                return {name: self.encode(part, f"{place}/{name}") for name, part in value.items()}
            case Mapping():
                return {
                    "$pairs": [
                        [self.encode(name, place), self.encode(part, f"{place}/{name}")] for name, part in value.items()
                    ]
                }
        name = type(value).__name__
        if RECORDS.get(name) is not type(value):
            raise TypeError(f"a checkpoint cannot store {type(value)}, found at {place}")
        values = {one.name: getattr(value, one.name) for one in fields(value)}
        return {f"${name}": {name: self.encode(part, f"{place}/{name}") for name, part in values.items()}}

    def _items(self, values: Iterable[Any], place: str) -> list[Any]:
        return [self.encode(value, f"{place}/{number}") for number, value in enumerate(values)]

    def _tensor(self, tensor: Tensor, place: str) -> dict[str, Any]:
        """The name for this content, newly assigned if the content is new."""
        own = tensor.detach().cpu().contiguous()
        name = self._name(own, place)
        if name in self.tensors:
            return {"$tensor": name}
        if (base_name := self._base(place.rpartition("/")[2])) is not None:
            # Equal tensors need not have equal bases, as at the start of a run, when all norms are ones.
            base_name = self._base_of.setdefault(name, base_name)
            if name + DISTANCE in self.tensors:
                return {"$near": [base_name, name]}
            if (parts := distance(own, self.tensors[base_name])) is not None:
                self.tensors |= {name + part: values for part, values in zip(NEAR_PARTS, parts, strict=True)}
                return {"$near": [base_name, name]}
        # A view would keep its whole base beside it: safetensors refuses tensors that share memory.
        is_whole = own.untyped_storage().nbytes() == own.nbytes
        self.tensors[name] = own if is_whole else own.clone()
        return {"$tensor": name}

    def _base(self, last: str) -> str | None:
        """The name under which the tensor of this name in `near` is stored already; else None."""
        if last not in self.near:
            return None
        if last not in self._bases:
            name = self._name(self.near[last].detach().cpu().contiguous(), "")
            if name not in self.tensors:
                return None
            self._bases[last] = name
        return self._bases[last]

    def _name(self, own: Tensor, place: str) -> str:
        content = hashlib.sha256(own.reshape(-1).view(torch.uint8).numpy().data).digest()
        return self._names.setdefault((own.dtype, own.shape, content), place.removeprefix("/"))

    def _array(self, array: np.ndarray) -> list[Any]:
        name = array.dtype.name
        start = self._used.get(name, 0)
        self._used[name] = start + array.size
        self.parts.setdefault(name, []).append(array.reshape(-1))
        return [name, start, list(array.shape)]
