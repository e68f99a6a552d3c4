"""Attention of one decode step to cached keys and values: one query a row, rows of uneven lengths.

A processor reads keys and values about as fast as memory gives them away, so what counts is how many bytes are read.
Products of batched matrices read every row as far as the longest reaches, and take several times as long as the reading
because each has a single row. `TiledStep` reads every row as far as it is long. Both of its products are sums of rows
of a table with weights, `embedding_bag`, which PyTorch computes at the rate of memory:

    values of a row     sum over positions t of w_t v_t        a bag of its positions
    scores of a tile    sum over d of q_d (k_d of its tokens)  a bag of head_size; keys lie tile by tile, transposed

`DenseStep` is for GPUs, whose captured steps have fixed shapes, and for half precision.
"""

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

TILE = 32
"""Positions whose keys lie together, number d of all of them side by side."""


class CachedStep(Protocol):
    """What is the same for all layers of one decode step; a layer holds [rows, heads, 2, positions, D]."""

    def write(self, layer: Tensor, k: Tensor, v: Tensor) -> None:
        """Cache keys and values [n, heads, D] of the step's own tokens."""

    def attend(self, layer: Tensor, q: Tensor) -> Tensor:
        """Attention [n, heads x D] of queries [n, heads, D]."""
        ...


def unseen(position_n: Tensor, reach: int) -> Tensor:
    """What is added to the scores [n, heads, reach] of each row: nothing up to its position, -inf beyond."""
    beyond_n1T = (torch.arange(reach, device=position_n.device) > position_n[:, None])[:, None]
    return torch.zeros(beyond_n1T.shape, device=position_n.device).masked_fill_(beyond_n1T, float("-inf"))


class DenseStep:
    """Every row attends to as many positions as the longest, those beyond its own masked."""

    def __init__(self, position_n: Tensor, reach: int, layer: Tensor, products: torch.dtype) -> None:
        n, device = len(position_n), position_n.device
        heads, positions = layer.shape[1], layer.shape[3]
        self.reach, self.products = reach, products
        self._place = (
            torch.arange(n * heads * 2, device=device).view(n, -1) * positions + position_n[:, None]
        ).flatten()
        self._bias_n1T = unseen(position_n, reach)

    def write(self, layer: Tensor, k: Tensor, v: Tensor) -> None:
        """Cache keys and values [n, heads, D] of the step's own tokens."""
        n, _, size = k.shape
        fresh = torch.stack((k, v), dim=2).view(-1, size).to(layer.dtype)
        layer[:n].view(-1, size).index_copy_(0, self._place, fresh)

    def attend(self, layer: Tensor, q: Tensor) -> Tensor:
        """Attention [n, heads x D] of queries [n, heads, D].

        In half precision it is rounded where the fused attention of training is: the factors, not the sums, and the
        weights before they are divided by their sum.
        """
        n, heads, size = q.shape
        cached, reach = layer[:n].flatten(0, 1), self.reach
        with torch.autocast(q.device.type, enabled=False):
            query = (q * size**-0.5).reshape(n * heads, 1, size)
            keys, values = cached[:, 0, :reach].float(), cached[:, 1, :reach].float()
            scores = torch.bmm(query, keys.transpose(1, 2))
            scores = scores.view(n, heads, reach) + self._bias_n1T
            if self.products == torch.float32:
                return torch.bmm(scores.softmax(-1).view(n * heads, 1, reach), values).view(n, -1)
            weights = (scores - scores.amax(-1, keepdim=True)).exp()
            rounded = as_factor(weights, self.products).view(n * heads, 1, reach)
            total = weights.sum(-1).view(n * heads, 1, 1)
            return (torch.bmm(rounded, values) / total).view(n, -1)


def as_factor(x: Tensor, products: torch.dtype) -> Tensor:
    """x as a factor of a product in that precision, kept in float32."""
    return x if products == torch.float32 else x.to(products).float()


class Tables:
    """Where everything lies that rows of a cache may attend to; the same for all steps of one size.

    A row of a head is a pair. Keys of a pair are the table [positions / TILE x D, TILE], its values [positions, D].
    """

    def __init__(self, n: int, reach: int, layer: Tensor) -> None:
        heads, positions, size, device = layer.shape[1], layer.shape[3], layer.shape[4], layer.device
        self.sizes = (n, reach, positions)
        # The position of the layer at which the keys of each pair begin.
        first = 2 * positions * torch.arange(n * heads, device=device)
        self.key_numbers = (first * size)[:, None] + torch.arange(0, size * TILE, TILE, device=device)
        """Where each number of a pair's first key is, [pairs, D]."""
        self.values = first + positions
        """Where the first value of a pair is, [pairs]."""
        tiles = ((first // TILE)[:, None] + torch.arange(reach // TILE, device=device)) * size
        self.key_rows = (tiles.view(-1, 1) + torch.arange(size, device=device)).int()
        """Rows of the keys' table of each tile, [pairs x tiles, D]."""
        self.value_rows = (self.values[:, None] + torch.arange(reach, device=device)).int().flatten()
        """Row of the values' table of each position, [pairs x reach]."""


class TiledStep:
    """Every row attends to its own positions alone; float32 on a processor, positions in whole tiles."""

    def __init__(self, position_n: Tensor, layer: Tensor, tables: Tables | None = None) -> None:
        n, heads, size = len(position_n), layer.shape[1], layer.shape[4]
        reach = (int(position_n.max()) // TILE + 1) * TILE
        if tables is None or tables.sizes != (n, reach, layer.shape[3]):
            tables = Tables(n, reach, layer)
        self.tables = tables
        """To be used again by the next step, which mostly has the same size."""
        position = position_n[:, None].expand(n, heads).reshape(-1)
        tile = position // TILE
        self._key_place = (tables.key_numbers + (position + tile * (TILE * (size - 1)))[:, None]).flatten()
        self._value_place = tables.values + position

        num_tiles = reach // TILE
        in_use = (torch.arange(num_tiles, device=layer.device) <= tile[:, None]).flatten()
        tiles = in_use.nonzero().flatten()
        self._tile_pair = tiles // num_tiles
        self._key_rows = tables.key_rows.index_select(0, tiles).flatten()
        self._key_bags = starts(in_use * size)

        self._bias_n1T = unseen(position_n, reach)
        self._seen = (self._bias_n1T == 0).expand(n, heads, reach).reshape(-1).nonzero().flatten()
        self._value_rows = tables.value_rows.index_select(0, self._seen)
        self._value_bags = starts(position + 1)

    def write(self, layer: Tensor, k: Tensor, v: Tensor) -> None:
        """Cache keys and values [n, heads, D] of the step's own tokens."""
        layer.view(-1).index_copy_(0, self._key_place, k.reshape(-1))
        layer.view(-1, k.shape[-1]).index_copy_(0, self._value_place, v.flatten(0, 1))

    def attend(self, layer: Tensor, q: Tensor) -> Tensor:
        """Attention [n, heads x D] of queries [n, heads, D]."""
        n, heads, size = q.shape
        query = (q * size**-0.5).flatten(0, 1).index_select(0, self._tile_pair)
        scores = F.embedding_bag(
            self._key_rows, layer.view(-1, TILE), self._key_bags, mode="sum", per_sample_weights=query.view(-1)
        )
        weights = scores.view(n, heads, -1).add_(self._bias_n1T).softmax(-1)
        return F.embedding_bag(
            self._value_rows,
            layer.view(-1, size),
            self._value_bags,
            mode="sum",
            per_sample_weights=weights.view(-1).index_select(0, self._seen),
        ).view(n, -1)


def starts(sizes: Tensor) -> Tensor:
    """Where each bag of so many rows begins among the rows of all bags."""
    return (sizes.cumsum(0) - sizes).int()


def tiled(keys: Tensor) -> Tensor:
    """Keys [..., positions, D] as they lie in tiles, of the same shape; positions are whole tiles."""
    *_, positions, size = keys.shape
    return keys.unflatten(-2, (positions // TILE, TILE)).transpose(-1, -2).reshape(*keys.shape[:-2], positions, size)


def untiled(keys: Tensor) -> Tensor:
    """The inverse: keys [..., positions, D] token by token."""
    *_, positions, size = keys.shape
    tiles = keys.reshape(*keys.shape[:-2], positions // TILE, size, TILE)
    return tiles.transpose(-1, -2).reshape(*keys.shape[:-2], positions, size).contiguous()  # never a view of `keys`
