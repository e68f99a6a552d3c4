"""Base class for everything a user writes: frozen, strict, documented field by field; with bounds that several fields
share."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


@dataclass(frozen=True)
class Unit:
    """The unit of a number, for the settings page: `Annotated[int, Field(ge=1), Unit("tokens")]`."""

    name: str


Fraction = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0, le=1e30)]
"""A number above 0 that 32 bits can hold."""
Rate = Annotated[float, Field(gt=0, le=1000)]
"""A learning rate."""
Count = Annotated[int, Field(ge=1, le=10**9)]
Parameters = Annotated[int, Field(ge=1, le=10**15)]
"""The number of a model's parameters."""


class Frozen(BaseModel):
    """An immutable pydantic model that rejects unknown keys. The string below a field is its meaning."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
