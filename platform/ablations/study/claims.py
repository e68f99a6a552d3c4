"""A paper's claims about variants, as data that a verdict can confirm or contradict.

    claims:
      - {variant: fp32, of: ceiling, says: up, by: 0.09, source: "figure 5b"}
      - {variant: fp32, of: level, says: carries, source: "our guess"}            # over the scales of the study

`ablations.findings.claim_card` compares a claim with the measured interval, or with what becomes of it over scales.
"""

import math
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from scalerl.frozen import Frozen

Quantity = Literal["level", "ceiling", "compute"]
OverScales = Literal["carries", "fades", "flips"]
LEAST_RATE = 0.02
"""Smallest difference in pass rate that the paper counts as one (ScaleRL §4, A.5)."""
LEAST_RATIO = 1.1
"""Smallest difference in efficiency that the paper names: B of 2.01 instead of 1.77 at one ceiling (ScaleRL §4)
reaches 80 % of the gain with 4^(1 / 2.01 - 1 / 1.77) = 1 / 1.10 of the compute."""


class Claim(Frozen):
    """A paper's claim about one variant, for example that an FP32 head raises the ceiling by 0.09.

    Claim(variant="fp32", of="ceiling", says="up", by=0.09, source="figure 5b")
    """

    variant: str
    """The variant of the claim."""
    against: str | None = None
    """The variant with which the claim compares. Default: the reference."""
    of: Quantity
    """The quantity compared: pass rate at equal compute, ceiling A, or compute to a common pass rate."""
    says: Literal["up", "down", "same", OverScales]
    """Direction in which the variant differs: `of: compute` and `says: down` is less compute. "carries", "fades" and
    "flips" say how its difference from the reference develops over the scales of the study."""
    by: Annotated[float, Field(gt=0)] | None = None
    """The published size: a difference in pass rate, or a ratio of compute above 1. Default: 0.02, or 1.1 for compute.
    With `says: same`, the largest difference that still counts as no difference."""
    source: Annotated[str, Field(min_length=1)]
    """Source of the claim: a figure, section, or write-up."""

    @model_validator(mode="after")
    def _fits_what_it_says(self) -> Self:
        for key in ("by", "against") if self.is_over_scales else ():
            if getattr(self, key) is not None:
                raise ValueError(
                    f"{key}: no effect with `says: {self.says}`, which is what becomes of the difference from the "
                    "reference over scales; remove it"
                )
        if self.by is not None and self.of == "compute" and self.by <= 1:
            raise ValueError(f"by: found {self.by:g}; for compute, write a ratio above 1, for example 1.2")
        if self.by is not None and self.of != "compute" and self.by >= 1:
            raise ValueError(f"by: found {self.by:g}; a difference in pass rate must be between 0 and 1")
        return self

    @property
    def is_over_scales(self) -> bool:
        """True if the claim is about how a difference develops over the scales of a study."""
        return self.says in get_args(OverScales)

    @property
    def size(self) -> float:
        """The size `by` or its default: in pass rate, in ln for compute."""
        if self.of == "compute":
            return math.log(LEAST_RATIO if self.by is None else self.by)
        return LEAST_RATE if self.by is None else self.by
