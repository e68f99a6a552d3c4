"""FP32 products at the speed of tensor cores.

    a = a1 + a2      a1: a rounded to TF32, which has 10 bits of mantissa; a2: the rest, exact in FP32
    a b ~ a1 b1 + a1 b2 + a2 b1

Three products in TF32, summed in FP32, leave out a2 b2 and the rounding of a2 and b2: a relative error of about 2^-21
of the sum of |a| |b|, where FP32 has 2^-24 and BF16 2^-9 (Ootomo and Yokota, arXiv 2203.03341). On an H100 FP32 has a
fifteenth of the rate of BF16, TF32 half of it; so a head in FP32 is as long in its products as the rest of a model of
0.6 B parameters with a vocabulary of 150,000 three times over.

On a CPU, and for other types, a factor has one part and a product is PyTorch's own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

DROPPED_BITS = 13
"""Bits of an FP32 mantissa that TF32 does not have."""


class Factor(NamedTuple):
    """A matrix as the sum of two."""

    large: Tensor
    small: Tensor | None = None
    """None if the matrix is one part."""

    @classmethod
    def of(cls, x: Tensor) -> "Factor":
        """Two parts for a product in FP32 on a GPU, else one."""
        return cls.split(x) if x.is_cuda and x.dtype == torch.float32 else cls(x)

    @classmethod
    def split(cls, x: Tensor) -> "Factor":
        """Two parts, the first rounded to the nearest number of TF32."""
        bits = x.detach().view(torch.int32) + (1 << (DROPPED_BITS - 1))
        large = bits.bitwise_and_(-(1 << DROPPED_BITS)).view(torch.float32)
        return cls(large, x.detach() - large)

    @property
    def mT(self) -> "Factor":  # noqa: N802 - torch's own name
        """The transposed matrix."""
        return Factor(self.large.mT, None if self.small is None else self.small.mT)


def product(a: Factor, b: Factor) -> Tensor:
    """a b, [N, M] from [N, K] and [K, M]; factors of one part each, or of two each."""
    if a.small is None or b.small is None:
        return a.large @ b.large
    with _tf32():
        return torch.mm(a.small, b.large).addmm_(a.large, b.small).addmm_(a.large, b.large)


def add_product(total: Tensor, a: Factor, b: Factor) -> None:
    """total += a b."""
    if a.small is None or b.small is None:
        total.addmm_(a.large, b.large)
        return
    with _tf32():
        total.addmm_(a.small, b.large).addmm_(a.large, b.small).addmm_(a.large, b.large)


@contextmanager
def _tf32() -> Iterator[None]:
    settings = torch.backends.cuda.matmul
    before, settings.allow_tf32 = settings.allow_tf32, True
    try:
        yield
    finally:
        settings.allow_tf32 = before
