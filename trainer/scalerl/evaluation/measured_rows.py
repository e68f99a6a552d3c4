"""The results of one evaluation, as columns of rows; imports little, since messages between processes contain it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class MeasuredRows:
    """Columns of the rows of one evaluation: `MeasuredRows(held_out=[{"pass_rate": .48}], downstream=[])`."""

    held_out: Sequence[dict[str, Any]]
    downstream: Sequence[dict[str, Any]]
    rollouts: Sequence[dict[str, Any]] = field(default_factory=list)
    """Sample rollouts of the held-out prompts, for people to read."""
    faults: Sequence[str] = ()
    """Sentences about environments that failed."""
