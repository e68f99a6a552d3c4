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
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class Frozen(BaseModel):
    """An immutable pydantic model that rejects unknown keys and reads descriptions from docstrings below fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)
