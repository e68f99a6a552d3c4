"""A run's state as JSON, tensors and arrays, and back. The only classes allowed are those of `RECORDS`.

JSON holds plain values as they are. Other values become an object with one key that starts with `$`:

    {"$tuple": [1, 2]}                     a tuple
    {"$pairs": [[17, ...], ...]}           a mapping whose keys are not all strings
    {"$tensor": "cluster/learner/policy/norm"}    a tensor, by name
    {"$array": ["int32", 40, [7]]}         a NumPy array of shape [7], from place 40 of all numbers of that type
    {"$prompt": ["k_smallest", "3:k9a2"]}  a training prompt of the task, by task and id
    {"$Request": {"prompt": ..., ...}}     a dataclass, by field

Tensors with equal content are stored once, under the name of the first: weights of generators, of publications under
way and of frozen copies are mostly the learner's.
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
from scalerl.generator.request import Request
from scalerl.prompts.pool import Key, key
from scalerl.rollout import Group, Prompt, Rollout

RECORDS: dict[str, type] = {"Assembly": Assembly, "Group": Group, "Request": Request, "Rollout": Rollout}
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


def encode(state: Any) -> Encoded:
    """Split the state into three parts; TypeError names the place of a value that cannot be encoded."""
    encoder = _Encoder()
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
    return _Decoder(encoded, {key(prompt): prompt for prompt in prompts}).decode(encoded.tree)


class _Encoder:
    """The tensors and arrays collected so far."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.parts: dict[str, list[np.ndarray]] = {}
        self._names: dict[tuple[torch.dtype, torch.Size, bytes], str] = {}
        self._used: dict[str, int] = {}

    def encode(self, value: Any, place: str) -> Any:
        match value:
            case None | bool() | int() | float() | str():
                return value
            case Prompt():
                return {"$prompt": list(key(value))}
            case Tensor():
                return {"$tensor": self._tensor(value, place)}
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

    def _tensor(self, tensor: Tensor, place: str) -> str:
        """The name for this content, newly assigned if the content is new."""
        own = tensor.detach().cpu().contiguous()
        content = hashlib.sha256(own.reshape(-1).view(torch.uint8).numpy().data).digest()
        name = self._names.setdefault((own.dtype, own.shape, content), place.removeprefix("/"))
        if name not in self.tensors:
            # A view would keep its whole base beside it: safetensors refuses tensors that share memory.
            is_whole = own.untyped_storage().nbytes() == own.nbytes
            self.tensors[name] = own if is_whole else own.clone()
        return name

    def _array(self, array: np.ndarray) -> list[Any]:
        name = array.dtype.name
        start = self._used.get(name, 0)
        self._used[name] = start + array.size
        self.parts.setdefault(name, []).append(array.reshape(-1))
        return [name, start, list(array.shape)]


class _Decoder:
    """The tensors and arrays, and the prompts by key."""

    def __init__(self, encoded: Encoded, prompts: Mapping[Key, Prompt]) -> None:
        self.encoded, self.prompts = encoded, prompts

    def decode(self, tree: Any) -> Any:
        match tree:
            case list():
                return [self.decode(part) for part in tree]
            case {"$tuple": parts}:
                return tuple(self.decode(part) for part in parts)
            case {"$pairs": pairs}:
                return {self.decode(name): self.decode(part) for name, part in pairs}
            case {"$tensor": name}:
                return self.encoded.tensors[name].clone()
            case {"$array": [name, start, shape]}:
                return self.encoded.arrays[name][start : start + math.prod(shape)].reshape(shape).copy()
            case {"$prompt": [task, prompt]}:
                if (task, prompt) not in self.prompts:
                    raise ValueError(f"the task {task!r} has no training prompt {prompt!r}")
                return self.prompts[task, prompt]
            case dict():
                decoded = {name: self.decode(part) for name, part in tree.items()}
                record = next((name for name in decoded if name.startswith("$")), None)
                return decoded if record is None else RECORDS[record[1:]](**decoded[record])
        return tree
