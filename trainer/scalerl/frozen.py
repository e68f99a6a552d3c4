"""The base of everything a human types: frozen, exact, documented field by field."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A pydantic model that cannot change, refuses unknown keys and takes field meanings from the strings below."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)
