"""What a paper says of a variant, as data that a verdict can bear out or contradict.

    claims:
      - {variant: fp32, of: ceiling, says: up, by: 0.09, source: "figure 5b"}

`ablations.findings.judgement` holds it against the interval that was measured.
"""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scalerl.frozen import Frozen

Quantity = Literal["level", "ceiling", "compute"]
LEAST_RATE = 0.02
"""Differences in pass rate that the paper takes for none are smaller (ScaleRL §4, A.5)."""
LEAST_RATIO = 1.1
"""The smallest difference in efficiency that the paper names: B of 2.01 instead of 1.77 at one ceiling (ScaleRL §4)
reaches 80 % of the gain with 4^(1 / 2.01 - 1 / 1.77) = 1 / 1.10 of the compute."""


class Claim(Frozen):
    """What a paper says of one variant, for example that an FP32 head raises the ceiling by 0.09.

    Claim(variant="fp32", of="ceiling", says="up", by=0.09, source="figure 5b")
    """

    variant: str
    """The variant of which it is said."""
    against: str | None = None
    """The variant that it is compared with; by default the reference."""
    of: Quantity
    """What is compared: the pass rate at equal compute, the ceiling A, or the compute to a common pass rate."""
    says: Literal["up", "down", "same"]
    """How the variant differs: `of: compute` and `says: down` is less compute."""
    by: Annotated[float, Field(gt=0)] | None = None
    """The published size: in pass rate, or the ratio of computes, above 1. Without it 0.02, or 1.1 of compute. With
    `says: same` the largest difference that still counts as none."""
    source: Annotated[str, Field(min_length=1)]
    """Where it is said: figure, section, or write-up."""

    @model_validator(mode="after")
    def _size_is_one(self) -> Self:
        if self.by is None:
            return self
        if self.of == "compute" and self.by <= 1:
            raise ValueError(f"by: found {self.by:g}; of compute it is a ratio above 1, for example 1.2")
        if self.of != "compute" and self.by >= 1:
            raise ValueError(f"by: found {self.by:g}; a difference in pass rate lies between 0 and 1")
        return self

    @property
    def size(self) -> float:
        """`by` or its default: in pass rate, in ln for compute."""
        if self.of == "compute":
            return math.log(LEAST_RATIO if self.by is None else self.by)
        return LEAST_RATE if self.by is None else self.by
