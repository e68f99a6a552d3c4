"""The processes that train one network together, and their messages outside of forward and backward passes."""

import os
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

    Every method is collective: all ranks call it in the same order. A single process waits for nobody.
    """

    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        """True for the rank that answers for all of them."""
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
