"""A variant as the sweep file requests it, before anything is resolved."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ablations.errors import Place
from ablations.study.override import Override

MAX_COMBINATIONS = 1000
"""Maximum number of variants of one form."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A variant as requested in the sweep file.

    >>> Draft(name="batch=small", overrides=(Override(path="batch.prompts", value=32, place=place),), place=place)
    """

    name: str
    overrides: tuple[Override, ...]
    place: Place
    may_be_reference: bool = False
    """True if the draft may change nothing: one point of a grid may be the reference."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """The draft's value on each axis that it combines."""
