"""Assignment of a batch's passes to ranks. Every pass is computed once, and all ranks compute equally many.

A sharded network is gathered in every pass, so a rank with one pass fewer would leave the others waiting. A rank with
no pass left repeats another rank's pass, and that repeat does not count.
"""

from collections.abc import Sequence


def shares(costs: Sequence[int], ranks: int) -> list[list[tuple[int, bool]]]:
    """Micro-batches of each rank by their index, in the order of the batch, and whether the pass counts.

    `costs` are those of the micro-batches, at least one. The loss of a pass that does not count is multiplied by 0.
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
        [*((index, True) for index in sorted(of_rank)), *[(cheapest, False)] * (most - len(of_rank))] for of_rank in own
    ]
