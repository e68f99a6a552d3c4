"""The processes that train one network together, their messages outside of forward and backward passes, and the
passes of each."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import Store  # pyright: ignore[reportPrivateImportUsage]  torch does not list it

from scalerl.errors import Interrupted


class RankDied(Interrupted):
    """A rank of the learner ended on its own; the run can be resumed from its last checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """One of `world` processes that train together: `Ranks(rank=1, world=2)` is the second of two.

    Every method is collective: all ranks call it in the same order. A single process never waits.
    """

    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        """True for the rank that speaks for all of them."""
        return self.rank == 0

    def summed(self, tensor: Tensor) -> Tensor:
        """Sum of all ranks' tensors; overwrites the given tensor."""
        if self.world > 1:
            dist.all_reduce(tensor)
        return tensor

    def gathered(self, value: Any) -> list[Any]:
        """All ranks' values, in order."""
        found = [value] * self.world
        if self.world > 1:
            dist.all_gather_object(found, value)
        return found


ALONE = Ranks()
"""A single training process."""
LIMIT = timedelta(minutes=10)
"""Time limit of a wait for another rank. A dead rank is noticed at once, by its closed connection."""


def join(store: Store, *, rank: int, world: int, are_together: bool = True) -> Ranks:
    """Become one of `world` ranks that meet at `store`; collective.

    With `are_together`, messages stay on this machine."""
    if are_together:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=LIMIT)
    return Ranks(rank=rank, world=world)


def shares(costs: Sequence[int], ranks: int) -> list[list[tuple[int, bool]]]:
    """Micro-batches of each rank by their index, in the order of the batch, and whether the pass counts.

    `costs` are those of the micro-batches, at least one. A sharded network is gathered in every pass, so a rank with a
    pass fewer would leave the others waiting: such a rank repeats the cheapest pass, whose loss is multiplied by 0. The
    most expensive micro-batch goes first, to the rank with the least work so far, which balances the ranks.
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
