"""Meaning, unit and cited papers of one setting, read from the recipe's models.

>>> meaning_of(recipe, "loss.max_ratio").source
'arXiv 2506.13585'
"""

import re
from dataclasses import dataclass

from pydantic import BaseModel

from scalerl.recipe.reference import meanings, range_of, said, unit_of

SOURCE = re.compile(r"arXiv \d{4}\.\d{5}|ScaleRL(?: §[\d.]+| A\.\d+)?")
"""Form of citations in descriptions."""


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """Meaning of one setting.

    Meaning(text="Rollouts per prompt.", unit="rollouts", allowed="≥ 2", source="ScaleRL A.3")
    """

    text: str
    unit: str
    """Unit; empty for a ratio or a count."""
    allowed: str
    """Bounds or choices."""
    source: str
    """Papers cited by its description or its block's; empty if none."""


def meaning_of(recipe: BaseModel, path: str) -> Meaning:
    """Meaning of the setting at a dotted path of a recipe, whose blocks have their types; raises KeyError if unknown.

    The meaning of a block's `type` is that of the block.
    """
    block, parts = recipe, path.split(".")
    for part in parts[:-1]:
        inner = getattr(block, part, None)
        if not isinstance(inner, BaseModel):
            raise KeyError(path)
        block = inner
    field = type(block).model_fields[parts[-1]]
    of_block = said(type(block)) if block is not recipe else ""
    text = " ".join((meanings(type(block)).get(parts[-1]) or of_block).split())
    cited = SOURCE.findall(text) or SOURCE.findall(of_block)
    return Meaning(text=text, unit=unit_of(field), allowed=range_of(field), source=", ".join(dict.fromkeys(cited)))
