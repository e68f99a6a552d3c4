"""Products of float32 activations and weights on a CPU, by oneDNN if they are large enough.

`F.linear` calls MKL, which on non-Intel CPUs uses half of the vector width; oneDNN checks what the CPU supports. On
those CPUs oneDNN takes about half as long, forward and backward (`benchmarks/generation_speed.py`). PyTorch exposes
oneDNN through an operator of its compiler that has no gradient; builds without the operator fall back to `F.linear`.
"""

import os
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

SMALL_PRODUCT = 2**20
"""Smallest product, in multiplications, for which calling oneDNN pays off."""
KEPT_KERNELS = 64
"""oneDNN compiles a kernel for each shape and keeps 1,024, in two caches. Shapes of rollouts seldom recur, so at
`bench` half of a run's memory were kernels that saved no time."""


def projected(x: Tensor, weight: Tensor) -> Tensor:
    """x weight^T: [..., out] from [..., in] and [out, in], in autocast's precision if autocast is on."""
    if not _has_onednn() or x.numel() * len(weight) < SMALL_PRODUCT or not is_plain(x) or not is_plain(weight):
        return F.linear(x, weight)
    if torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight)
    return _Product.apply(x, weight) if torch.is_grad_enabled() else _product(x, weight)


@cache
def _has_onednn() -> bool:
    """True if the operator exists and accepts the arguments of `_product`; the operator is private and may change."""
    for capacity in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):  # PyTorch's and oneDNN's own
        os.environ.setdefault(capacity, str(KEPT_KERNELS))  # read when oneDNN is first called
    try:
        x = torch.arange(4.0).view(2, 2)
        return torch.equal(_product(x, x), F.linear(x, x))
    except (AttributeError, RuntimeError, TypeError):
        return False


def is_plain(x: Tensor) -> bool:
    """True for a whole FP32 tensor on a CPU."""
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
