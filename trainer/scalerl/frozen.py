"""The base of everything a human types: frozen, exact, documented field by field; bounds that many fields have."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


@dataclass(frozen=True)
class Unit:
    """What a number counts, for the page of settings: `Annotated[int, Field(ge=1), Unit("tokens")]`."""

    name: str


Fraction = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]


class Frozen(BaseModel):
    """A pydantic model that cannot change, refuses unknown keys and takes field meanings from the strings below."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)
