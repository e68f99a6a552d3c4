"""What one setting of a recipe means, its unit, and the papers that it comes from, out of the models themselves.

>>> meaning_of(recipe, "loss.max_ratio").source
'arXiv 2506.13585'
"""

import re
from dataclasses import dataclass

from pydantic import BaseModel

from scalerl.recipe.reference import range_of, said, unit_of

SOURCE = re.compile(r"arXiv \d{4}\.\d{5}|ScaleRL(?: §[\d.]+| A\.\d+)?")
"""How descriptions cite."""


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """`Meaning(text="Rollouts of each prompt.", unit="rollouts", allowed="≥ 2", source="ScaleRL A.3")`."""

    text: str
    unit: str
    """Empty for a ratio or a count."""
    allowed: str
    """Bounds, or choices."""
    source: str
    """Papers that its description cites, or that of its block; empty where they cite none."""


def meaning_of(recipe: BaseModel, path: str) -> Meaning:
    """Of the setting at a dotted path of a recipe, which says what type each block on the way is. KeyError without it.

    The `type` of a block means what the block does.
    """
    block, parts = recipe, path.split(".")
    for part in parts[:-1]:
        inner = getattr(block, part, None)
        if not isinstance(inner, BaseModel):
            raise KeyError(path)
        block = inner
    field = type(block).model_fields[parts[-1]]
    of_block = said(type(block)) if block is not recipe else ""
    text = " ".join((field.description or of_block).split())
    cited = SOURCE.findall(text) or SOURCE.findall(of_block)
    return Meaning(text=text, unit=unit_of(field), allowed=range_of(field), source=", ".join(dict.fromkeys(cited)))
