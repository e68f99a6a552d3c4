"""Attention of one decode step to cached keys and values: one query per row, rows of uneven length.

`DenseStep` is for CPUs where the compiled kernels (`scalerl.model.kernels`) do not fit, as in half precision.
`FusedStep` is for GPUs, whose captured steps have fixed shapes: one kernel reads the cache once, in its own precision.
All layers of one decode step share a step; a layer holds [rows, heads, 2, positions, D].
"""

import torch
from torch import Tensor
from torch.nn import functional as F


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
