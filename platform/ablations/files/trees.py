"""Dataclasses with NumPy arrays as bytes, and back bit for bit: a CRC-32, then MessagePack.

>>> tree_from_bytes(tree_bytes(fit), Fit)

Reading makes nothing but what the type's annotations name, so no file can execute code, whoever wrote it.
"""

import math
import zlib
from functools import cache
from typing import Any, TypeVar

import msgspec
import numpy as np

from ablations.errors import AblationsError

NUMBER_KINDS = "biufc"
"""NumPy's codes for kinds of plain numbers; arrays that hold references are rejected."""
CRC_BYTES = 4
Tree = TypeVar("Tree")


class NotATree(AblationsError):
    """The file is damaged, or was written for another type."""


def tree_bytes(value: Any) -> bytes:
    """The value as bytes; TypeError if a part is neither a dataclass, a plain value nor an array of numbers."""
    content = msgspec.msgpack.encode(value, enc_hook=_plain)
    return zlib.crc32(content).to_bytes(CRC_BYTES) + content


def tree_from_bytes(content: bytes, kind: type[Tree]) -> Tree:
    """The value of type `kind` that `tree_bytes` wrote; raises NotATree for damaged content or that of another type."""
    crc, content = content[:CRC_BYTES], content[CRC_BYTES:]
    try:
        if int.from_bytes(crc) != zlib.crc32(content):
            raise ValueError("the checksum does not match the content")
        return _decoder(kind).decode(content)
    except (msgspec.DecodeError, TypeError, ValueError) as error:
        raise NotATree(f"{type(error).__name__}: {error}") from error


@cache
def _decoder(kind: Any) -> "msgspec.msgpack.Decoder[Any]":
    return msgspec.msgpack.Decoder(kind, dec_hook=_made)


def _plain(value: Any) -> Any:
    """What msgspec does not know: numbers of NumPy, slices and arrays."""
    match value:
        case np.generic():
            return value.item()
        case slice():
            return [value.start, value.stop, value.step]
        case np.ndarray() if value.dtype.kind in NUMBER_KINDS:
            order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
            return [value.dtype.str, value.shape, order, value.tobytes(order)]
        case np.ndarray():
            raise TypeError(f"cannot save an array of {value.dtype}")
    raise TypeError(f"{type(value).__name__} is not a dataclass, array or plain value")


def _made(kind: type, plain: Any) -> Any:
    """The inverse of `_plain`."""
    if kind is slice:
        return slice(*plain)
    dtype, shape, order, content = plain
    number = np.dtype(dtype)
    if kind is not np.ndarray or number.kind not in NUMBER_KINDS:
        raise ValueError(f"cannot read an array of {dtype}")
    if len(content) != number.itemsize * math.prod(shape):
        raise ValueError(f"an array of shape {shape} in {len(content)} bytes")
    # A copy is writable, and aligned like any other array.
    return np.frombuffer(content, number).reshape(shape, order=order).copy("K")
