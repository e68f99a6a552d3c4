"""Dynamic loss scaling, which lifts gradients too small for FP16 above its smallest number (arXiv 1710.03740).

LossScale(value=65536.0, good_steps=12)
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

INITIAL_SCALE = 2.0**16
GOOD_STEPS = 2000
"""Number of consecutive steps without overflow before the scale is doubled."""


@dataclass(frozen=True, kw_only=True)
class LossScale:
    """Factor on the loss before the backward pass; 1 has no effect."""

    value: float
    good_steps: int = 0
    """Number of consecutive steps without overflow since the scale last changed."""

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss times the scale."""
        return loss if self.value == 1 else loss * self.value

    @torch.no_grad()
    def unscale(self, parameters: Iterable[nn.Parameter]) -> None:
        """Divide the gradients by the scale; overflowed ones stay infinite or NaN."""
        if self.value != 1:
            for parameter in parameters:
                if parameter.grad is not None:
                    parameter.grad /= self.value

    def after(self, *, overflow: bool) -> "LossScale":
        """Half the scale after an overflow, but at least 1; double after `GOOD_STEPS` steps without overflow."""
        if overflow:
            return LossScale(value=max(1.0, self.value / 2))
        if self.good_steps + 1 == GOOD_STEPS:
            return LossScale(value=2 * self.value)
        return LossScale(value=self.value, good_steps=self.good_steps + 1)
