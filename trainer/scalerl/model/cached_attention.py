"""Attention of one decode step to cached keys and values: one query per row, rows of uneven length.

On a CPU this step is bound by memory bandwidth, so the number of bytes read decides its speed. Batched matrix products
read every row up to the longest reach, and take several times the reading time because each has a single row.
`TiledStep` reads each row only to its own length. Both of its products are weighted sums of table rows
(`embedding_bag`), which PyTorch computes at memory bandwidth:

    values of a row     sum over positions t of w_t v_t        a bag of its positions
    scores of a tile    sum over d of q_d (k_d of its tokens)  a bag of head_size; keys lie tile by tile, transposed

`DenseStep` is for half precision. `FusedStep` is for GPUs, whose captured steps have fixed shapes: one kernel reads the
cache once, in its own precision. All layers of one decode step share a step; a layer holds [rows, heads, 2, positions,
D].
"""

import torch
from torch import Tensor
from torch.nn import functional as F

TILE = 32
"""Positions per tile; a tile stores its keys transposed, so component d of all its positions is contiguous."""


def unseen(position_n: Tensor, reach: int) -> Tensor:
    """Bias [n, 1, reach] added to attention scores: 0 up to each row's position, -inf beyond."""
    beyond_n1T = (torch.arange(reach, device=position_n.device) > position_n[:, None])[:, None]
    return torch.zeros(beyond_n1T.shape, device=position_n.device).masked_fill_(beyond_n1T, float("-inf"))


class DenseStep:
    """Attention of every row to as many positions as the longest row; positions beyond its own are masked."""

    def __init__(self, position_n: Tensor, reach: int, layer: Tensor, products: torch.dtype) -> None:
        n, device = len(position_n), position_n.device
        heads, positions = layer.shape[1], layer.shape[3]
        self.reach, self.products = reach, products
        self._place = (
            torch.arange(n * heads * 2, device=device).view(n, -1) * positions + position_n[:, None]
        ).flatten()
        self._bias_n1T = unseen(position_n, reach)

    def write(self, layer: Tensor, k: Tensor, v: Tensor) -> None:
        """Cache keys and values [n, heads, D] of the tokens of this step."""
        n, _, size = k.shape
        fresh = torch.stack((k, v), dim=2).view(-1, size).to(layer.dtype)
        layer[:n].view(-1, size).index_copy_(0, self._place, fresh)

    def attend(self, layer: Tensor, q: Tensor) -> Tensor:
        """Attention [n, heads x D] of queries [n, heads, D].

        Half precision rounds at the same places as the fused attention of training: factors but not sums, and weights
        before normalisation.
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


class FusedStep(DenseStep):
    """One decode step with PyTorch's fused attention."""

    def attend(self, layer: Tensor, q: Tensor) -> Tensor:
        keys, values = layer[: len(q), :, :, : self.reach].unbind(2)
        query = q.to(layer.dtype)[:, :, None]
        bias = self._bias_n1T.to(layer.dtype)[:, None]
        return F.scaled_dot_product_attention(query, keys, values, attn_mask=bias).flatten(1).float()


def as_factor(x: Tensor, products: torch.dtype) -> Tensor:
    """x rounded to the precision of a product, stored as float32."""
    return x if products == torch.float32 else x.to(products).float()


class Tables:
    """Cache indices of everything that rows may attend to; reusable by all steps of one size.

    A pair is one row and one head. Its keys are a table [positions / TILE x D, TILE], its values [positions, D].
    """

    def __init__(self, n: int, reach: int, layer: Tensor) -> None:
        heads, positions, size, device = layer.shape[1], layer.shape[3], layer.shape[4], layer.device
        self.sizes = (n, reach, positions)
        # Position in the layer at which each pair's keys begin.
        first = 2 * positions * torch.arange(n * heads, device=device)
        self.key_numbers = (first * size)[:, None] + torch.arange(0, size * TILE, TILE, device=device)
        """Index of each component of a pair's first key, [pairs, D]."""
        self.values = first + positions
        """Index of the first value of each pair, [pairs]."""
        tiles = ((first // TILE)[:, None] + torch.arange(reach // TILE, device=device)) * size
        self.key_rows = (tiles.view(-1, 1) + torch.arange(size, device=device)).int()
        """Key-table rows of each tile, [pairs x tiles, D]."""
        self.value_rows = (self.values[:, None] + torch.arange(reach, device=device)).int().flatten()
        """Value-table row of each position, [pairs x reach]."""


class TiledStep:
    """Attention of each row to its own positions only: float32 on a CPU, with positions in whole tiles."""

    def __init__(self, position_n: Tensor, layer: Tensor, tables: Tables | None = None) -> None:
        n, heads, size = len(position_n), layer.shape[1], layer.shape[4]
        reach = (int(position_n.max()) // TILE + 1) * TILE
        if tables is None or tables.sizes != (n, reach, layer.shape[3]):
            tables = Tables(n, reach, layer)
        self.tables = tables
        """Tables for the next step to reuse, since its size is usually the same."""
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
        """Cache keys and values [n, heads, D] of the tokens of this step."""
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
    """Index of the first row of each bag, from the bag sizes."""
    return (sizes.cumsum(0) - sizes).int()


def tiled(keys: Tensor) -> Tensor:
    """Keys [..., positions, D] rearranged into tiles, with the same shape; `positions` is a multiple of TILE."""
    *_, positions, size = keys.shape
    return keys.unflatten(-2, (positions // TILE, TILE)).transpose(-1, -2).reshape(*keys.shape[:-2], positions, size)


def untiled(keys: Tensor) -> Tensor:
    """Inverse of `tiled`: keys [..., positions, D] token by token."""
    *_, positions, size = keys.shape
    tiles = keys.reshape(*keys.shape[:-2], positions // TILE, size, TILE)
    return tiles.transpose(-1, -2).reshape(*keys.shape[:-2], positions, size).contiguous()  # never a view of `keys`
