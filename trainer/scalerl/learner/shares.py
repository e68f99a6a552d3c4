"""Assignment of a batch's passes to ranks. Every pass is computed once, and all ranks compute equally many.

A sharded network is gathered in every pass, so a rank with one pass fewer would leave the others waiting. A rank with
no pass left repeats another rank's pass, and that repeat does not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One forward and backward pass of a rank: `Pass(index=3, counts=True, last=False)`."""

    index: int
    """Index of the micro-batch."""
    counts: bool
    """False if the rank only keeps step with the others: its loss is multiplied by 0."""
    last: bool
    """True for the rank's last pass of this batch."""


def shares(costs: Sequence[int], ranks: int) -> list[list[Pass]]:
    """Passes of each rank in the order of the batch; `costs` are those of its micro-batches, at least one.

    The most expensive micro-batch goes first, to the rank with the least work so far, which balances the ranks.
    """
    own: list[list[int]] = [[] for _ in range(ranks)]
    loads = [0] * ranks
    for index in sorted(range(len(costs)), key=lambda index: -costs[index]):
        rank = loads.index(min(loads))
        own[rank].append(index)
        loads[rank] += costs[index]
    most = max(len(indices) for indices in own)
    cheapest = min(range(len(costs)), key=costs.__getitem__)
    return [
        [
            Pass(index=index, counts=place < len(indices), last=place == most - 1)
            for place, index in enumerate([*sorted(indices), *[cheapest] * (most - len(indices))])
        ]
        for indices in own
    ]
