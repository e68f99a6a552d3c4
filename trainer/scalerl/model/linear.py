"""Products of float32 activations and weights on a processor, by oneDNN where they are large enough.

`F.linear` calls MKL, which on a processor that is not Intel's computes with half of its vector width; oneDNN looks at
what the processor can do. Forward, and for the gradients of activations and weights, it takes about half as long there
(`benchmarks/generation_speed.py`). PyTorch reaches it through an operator of its compiler, which has no gradient of its
own; a build without it falls back to `F.linear`.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

SMALL_PRODUCT = 2**20
"""Multiplications of a product below which a call of oneDNN costs more than it saves."""


def projected(x: Tensor, weight: Tensor) -> Tensor:
    """x weight^T, [..., out] of [..., in] and [out, in], in the precision of autocast if it is on."""
    if not _has_onednn() or x.numel() * len(weight) < SMALL_PRODUCT or not _is_plain(x) or not _is_plain(weight):
        return F.linear(x, weight)
    if torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight)
    return _Product.apply(x, weight) if torch.is_grad_enabled() else _product(x, weight)


@cache
def _has_onednn() -> bool:
    """Whether the operator is there and takes what `_product` gives it: it is private, and may change."""
    try:
        x = torch.arange(4.0).view(2, 2)
        return torch.equal(_product(x, x), F.linear(x, x))
    except (AttributeError, RuntimeError, TypeError):
        return False


def _is_plain(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.float32 and type(x) in (Tensor, torch.nn.Parameter)


def _product(x: Tensor, weight: Tensor) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        (of_product,), (x, weight) = gradients, ctx.saved_tensors
        of_x = _product(of_product, weight.t()) if ctx.needs_input_grad[0] else None
        if not ctx.needs_input_grad[1]:
            return of_x, None
        return of_x, _product(of_product.flatten(0, -2).t(), x.flatten(0, -2).t())
