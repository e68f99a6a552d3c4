"""Dynamic loss scaling: gradients too small for FP16 are lifted above its smallest number (arXiv 1710.03740).

LossScale(value=65536.0, good_steps=12)
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

INITIAL_SCALE = 2.0**16
GOOD_STEPS = 2000
"""Steps in a row without overflow before the scale is doubled."""


@dataclass(frozen=True, kw_only=True)
class LossScale:
    """What the loss is multiplied with before it goes backward; 1 does nothing."""

    value: float
    good_steps: int = 0
    """Steps in a row without overflow since the scale last changed."""

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss to go backward from."""
        return loss if self.value == 1 else loss * self.value

    @torch.no_grad()
    def unscale(self, parameters: Iterable[nn.Parameter]) -> None:
        """Divide the gradients by the scale; what overflowed stays infinite or NaN."""
        if self.value != 1:
            for parameter in parameters:
                if parameter.grad is not None:
                    parameter.grad /= self.value

    def after(self, *, overflow: bool) -> "LossScale":
        """Half after an overflow, but at least 1; twice after `GOOD_STEPS` steps without."""
        if overflow:
            return LossScale(value=max(1.0, self.value / 2))
        if self.good_steps + 1 == GOOD_STEPS:
            return LossScale(value=2 * self.value)
        return LossScale(value=self.value, good_steps=self.good_steps + 1)
