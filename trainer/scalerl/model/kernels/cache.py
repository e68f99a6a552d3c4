"""Keys and values in a cache whose rows lie side by side: how they are written, read and copied.

A block of the cache is [heads, 2, positions, G, LANES x QUAD], see `scalerl.model.kernels.lanes`.
"""

import numpy as np
import torch
from numba import types
from numba.extending import overload
from numpy.typing import NDArray
from torch import Tensor

from scalerl.model.kernels.compiled import kernel
from scalerl.model.kernels.lanes import LANES, QUAD
from scalerl.model.kernels.rows import Array
from scalerl.model.kernels.step_tokens import Indices

Cache = NDArray[np.float32] | NDArray[np.uint16]
"""Keys and values, in float32 or as the bits of BF16."""


def as_numbers(layer: Tensor) -> Cache:
    """The numbers of one layer of a cache; those of BF16 as bits."""
    bits: NDArray[np.int16] | None = layer.view(torch.int16).numpy() if layer.dtype == torch.bfloat16 else None
    return layer.numpy() if bits is None else bits.view(np.uint16)


def cached(number) -> np.float32:
    """A number of the cache."""
    raise NotImplementedError("compiled code only")


@overload(cached)
def _cached(number):
    if number == types.float32:
        return lambda number: number
    return lambda number: np.uint32(np.uint32(number) << np.uint32(16)).view(np.float32)


def stored(number, cache) -> np.float32 | np.uint16:
    """A number as the cache holds it."""
    raise NotImplementedError("compiled code only")


@overload(stored)
def _stored(number, cache):
    if cache.dtype == types.float32:
        return lambda number, cache: number
    return lambda number, cache: np.uint16(np.float32(number).view(np.uint32) >> np.uint32(16))


@kernel
def write_row(numbers_KD: Array, block: Cache, head: int, position: int, lane: int) -> None:
    """Cache a key and a value of one head, [2, D], at a position of the row in this lane."""
    for k in range(2):
        for d in range(numbers_KD.shape[1]):
            block[head, k, position, d // QUAD, lane * QUAD + d % QUAD] = stored(numbers_KD[k, d], block)


@kernel
def write_lanes(qkv_NR: Array, block: Cache, position_R: Indices, lanes: int) -> None:
    """Cache keys and values of one token in each of the first rows of a block, at its own position."""
    heads, size = len(block), len(qkv_NR) // (3 * len(block))
    for head in range(heads):
        for k in range(2):
            start = (3 * head + 1 + k) * size
            for r in range(lanes):
                to = block[head, k, position_R[r]]
                for d in range(size):
                    to[d // QUAD, r * QUAD + d % QUAD] = stored(qkv_NR[start + d, r], block)


@kernel
def read_row(block: Cache, lane: int, length: int, kv: Array) -> None:
    """The first positions of the row in this lane, into [heads, 2, positions, D]."""
    for head in range(len(kv)):
        for k in range(2):
            for t in range(length):
                for d in range(kv.shape[3]):
                    kv[head, k, t, d] = cached(block[head, k, t, d // QUAD, lane * QUAD + d % QUAD])


@kernel
def copy_rows(cache: Cache, copies: Indices) -> None:
    """Copy first positions of rows to others: [:, 3] with source, target and number of positions, by source."""
    first = 0
    while first < len(copies):
        source, length = copies[first, 0], copies[first, 2]
        after = first
        while after < len(copies) and copies[after, 0] == source:
            after += 1
        for head in range(cache.shape[1]):
            for k in range(2):
                for c in range(first, after):
                    target = copies[c, 1]
                    read, to = cache[source // LANES, head, k], cache[target // LANES, head, k]
                    a, b = source % LANES * QUAD, target % LANES * QUAD
                    for t in range(length):
                        for g in range(cache.shape[4]):
                            for s in range(QUAD):
                                to[t, g, b + s] = read[t, g, a + s]
        first = after


@kernel
def move_rows(cache: Cache, target: Indices, source: Indices) -> None:
    """Copy `source` rows to `target` rows; a row may be both."""
    _, heads, _, positions, groups, _ = cache.shape
    rows = np.empty((len(source), heads, 2, positions, groups, QUAD), cache.dtype)
    for i in range(len(source)):
        lane = source[i] % LANES * QUAD
        rows[i] = cache[source[i] // LANES, :, :, :, :, lane : lane + QUAD]
    for i in range(len(target)):
        lane = target[i] % LANES * QUAD
        cache[target[i] // LANES, :, :, :, :, lane : lane + QUAD] = rows[i]
