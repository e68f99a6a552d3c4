"""Assignment of tensors to the ranks that publish them, so that no rank gathers more than one layer at a time."""

import re
from collections.abc import Iterable

LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")


def layer_group(name: str) -> int:
    """Group of a tensor by its Hugging Face name: 1 + its layer; 0 outside the layers.

    >>> [layer_group(name) for name in ("model.embed_tokens.weight", "model.layers.3.mlp.up_proj.weight")]
    [0, 4]
    """
    found = LAYER.search(name)
    return 1 + int(found[1]) if found else 0


def names_of_rank(names: Iterable[str], rank: int, ranks: int) -> list[str]:
    """Names that `rank` publishes, in the given order: all groups g with g mod ranks = rank."""
    return [name for name in names if layer_group(name) % ranks == rank]
