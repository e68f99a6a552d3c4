"""Saves trees of dataclasses, tuples, mappings and arrays to one file and reads them back bit for bit.

>>> content = tree_bytes(fit, named=FAMILIES)
>>> tree_from_bytes(content, classes=(Fit, Curve, ...), named=FAMILIES)

The file is a NumPy `.npz` with two arrays: the tree as JSON, and the bytes of all its arrays end to end. One array is
enough because opening an array takes as long as reading a hundred thousand numbers. Reading creates instances of the
given classes only, so no file can execute code, whoever wrote it.
"""

import io
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal

import numpy as np

from ablations.errors import AblationsError

TREE, NUMBERS = "tree", "numbers"
"""Names of the two arrays in the file."""
ALIGNED_BYTES = 16
"""Each array starts at a multiple of this."""
NUMBER_KINDS = "biufc"
"""NumPy's codes for kinds of plain numbers; arrays that hold references are rejected."""


class NotATree(AblationsError):
    """The file is damaged, or holds a class or value that the reader does not know."""


def tree_bytes(value: Any, *, named: Mapping[str, Any] | None = None) -> bytes:
    """The content of the file; `named` are objects saved by name, such as a module's constants."""
    numbers = bytearray()
    tree = _encoded(value, numbers, {id(one): name for name, one in (named or {}).items()})
    buffer = io.BytesIO()
    held: dict[str, Any] = {TREE: np.array(json.dumps(tree)), NUMBERS: np.frombuffer(numbers, dtype=np.uint8)}
    np.savez(buffer, **held)
    return buffer.getvalue()


def tree_from_bytes(content: bytes, *, classes: Collection[type], named: Mapping[str, Any] | None = None) -> Any:
    """The inverse of `tree_bytes`; raises NotATree if the content is damaged or names an unknown class."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as held:
            tree, numbers = json.loads(str(held[TREE])), held[NUMBERS]
        return _decoded(tree, numbers, {one.__qualname__: one for one in classes}, named or {})
    except Exception as error:  # NumPy, zipfile, zlib, JSON, or a class whose fields differ
        raise NotATree(f"{type(error).__name__}: {error}") from error


def _put(array: np.ndarray, numbers: bytearray) -> dict[str, Any]:
    """Append the array to `numbers`; returns its description, with its position."""
    if array.dtype.kind not in NUMBER_KINDS:
        raise TypeError(f"cannot save an array of {array.dtype}")
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    numbers.extend(bytes(-len(numbers) % ALIGNED_BYTES))
    start = len(numbers)
    numbers.extend(array.tobytes(order))
    return {"array": [array.dtype.str, list(array.shape), order, start]}


def _taken(dtype: str, shape: list[int], order: Literal["C", "F"], start: int, numbers: np.ndarray) -> np.ndarray:
    """The inverse of `_put`; raises ValueError if the array does not lie within `numbers`."""
    kind = np.dtype(dtype)
    if kind.kind not in NUMBER_KINDS:
        raise ValueError(f"cannot read an array of {dtype}")
    end = start + kind.itemsize * math.prod(shape)
    if not 0 <= start <= end <= numbers.size:
        raise ValueError(f"array at bytes {start} to {end} of {numbers.size}")
    return numbers[start:end].view(kind).reshape(shape, order=order)


def _encoded(value: Any, numbers: bytearray, names: Mapping[int, str]) -> Any:
    def inner(one: Any) -> Any:
        return _encoded(one, numbers, names)

    if id(value) in names:
        return {"named": names[id(value)]}
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": str(value)}
        case np.ndarray():
            return _put(value, numbers)
        case slice():
            return {"slice": [value.start, value.stop, value.step]}
        case Mapping():
            return {"mapping": [[inner(key), inner(one)] for key, one in value.items()]}
        case tuple() if names_of_fields := getattr(value, "_fields", None):
            return {
                "class": type(value).__qualname__,
                "fields": {name: inner(getattr(value, name)) for name in names_of_fields},
            }
        case tuple():
            return {"tuple": [inner(one) for one in value]}
        case list():
            return {"list": [inner(one) for one in value]}
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: inner(getattr(value, field.name)) for field in fields(value) if field.init}
        return {"class": type(value).__qualname__, "fields": own}
    raise TypeError(f"{type(value).__name__} is not a dataclass, array or plain value")


def _decoded(tree: Any, numbers: np.ndarray, classes: Mapping[str, type], named: Mapping[str, Any]) -> Any:
    def inner(one: Any) -> Any:
        return _decoded(one, numbers, classes, named)

    if not isinstance(tree, dict):
        return tree
    kind = next(iter(tree))
    held = tree[kind]
    match kind:
        case "named":
            return named[held]
        case "float":
            return float(held)
        case "array":
            dtype, shape, order, start = held
            return _taken(dtype, shape, order, start, numbers)
        case "slice":
            return slice(*held)
        case "mapping":
            return {inner(key): inner(one) for key, one in held}
        case "tuple":
            return tuple(inner(one) for one in held)
        case "list":
            return [inner(one) for one in held]
        case "class":
            return classes[held](**{name: inner(one) for name, one in tree["fields"].items()})
    raise KeyError(kind)
