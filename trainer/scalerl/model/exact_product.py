"""FP32 products at the speed of tensor cores.

    a = a1 + a2      a1: a rounded to TF32, which has 10 bits of mantissa; a2: the rest, exact in FP32
    a b ~ a1 b1 + a1 b2 + a2 b1

Three products in TF32, summed in FP32, leave out a2 b2 and the rounding of a2 and b2: a relative error of about 2^-21
of the sum of |a| |b|, where FP32 has 2^-24 and BF16 2^-9 (Ootomo and Yokota, arXiv 2203.03341). On an H100 FP32 has a
fifteenth of the rate of BF16, TF32 half of it; so a head in FP32 is as long in its products as the rest of a model of
0.6 B parameters with a vocabulary of 150,000 three times over.

On a CPU, and for other types, a product is PyTorch's own.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

DROPPED_BITS = 13
"""Bits of an FP32 mantissa that TF32 does not have."""


def in_two_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """x as a sum: rounded to the nearest number of TF32, and the rest."""
    bits = x.view(torch.int32) + (1 << (DROPPED_BITS - 1))
    large = bits.bitwise_and_(-(1 << DROPPED_BITS)).view(torch.float32)
    return large, x - large


def is_split(x: Tensor) -> bool:
    """True if products of x are sums of products on tensor cores."""
    return x.is_cuda and x.dtype == torch.float32


def product(a: Tensor, b: Tensor) -> Tensor:
    """a b, [N, M] from [N, K] and [K, M]."""
    if not is_split(a):
        return a @ b
    total = a.new_zeros(a.shape[0], b.shape[1])
    add_product(total, a, b)
    return total


def add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """total += a b."""
    if not is_split(a):
        total.addmm_(a, b)
        return
    (a1, a2), (b1, b2) = in_two_parts(a), in_two_parts(b)
    with _tf32():
        total.addmm_(a2, b1).addmm_(a1, b2).addmm_(a1, b1)


@contextmanager
def _tf32() -> Iterator[None]:
    settings = torch.backends.cuda.matmul
    before, settings.allow_tf32 = settings.allow_tf32, True
    try:
        yield
    finally:
        settings.allow_tf32 = before
