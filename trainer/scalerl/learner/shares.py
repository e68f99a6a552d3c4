"""Which rank computes which passes of a batch. Every pass is computed once, and all ranks make equally many.

A sharded network is gathered in every pass, so a rank that made one pass less would leave the others waiting. Where
there is nothing left for it, it computes a pass of another rank once more, and that one does not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One forward and backward of a rank: `Pass(index=3, counts=True, last=False)`."""

    index: int
    """Of the batch's micro-batches."""
    counts: bool
    """False where the rank only keeps step with the others: its loss is taken times 0."""
    last: bool
    """Whether it is the rank's last of this batch."""


def shares(costs: Sequence[int], ranks: int) -> list[list[Pass]]:
    """The passes of each rank, in the batch's order; `costs` are those of the batch's micro-batches, at least one.

    The dearest goes first, to the rank that has least, so that no rank has much more than the others.
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
