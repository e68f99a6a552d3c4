"""The processes that train one network together, and what they tell each other outside its forward and backward."""

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import Store  # pyright: ignore[reportPrivateImportUsage]  torch does not list it

from scalerl.errors import Interrupted, Rejected


class RanksDisagree(Rejected):
    """Processes that must compute the same were given different things."""


class RankDied(Interrupted):
    """A rank of the learner ended on its own; the run can be resumed from its last checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """One process of `world` that train together: `Ranks(rank=1, world=2)` is the second of two.

    Every method is collective: all ranks call it in the same order. One process alone has nobody to wait for.
    """

    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        """Whether it is the rank that writes files and decides what depends on the time of day."""
        return self.rank == 0

    def summed(self, tensor: Tensor) -> Tensor:
        """The sum of all ranks' tensors, in place of this one."""
        if self.world > 1:
            dist.all_reduce(tensor)
        return tensor

    def agreed(self, decision: bool) -> bool:
        """What the first rank decides."""
        return bool(self.of_first(decision))

    def of_first(self, value: Any) -> Any:
        """What the first rank gives."""
        said = [value]
        if self.world > 1:
            dist.broadcast_object_list(said, src=0)
        return said[0]

    def gathered(self, value: Any) -> list[Any]:
        """What all ranks give, in order."""
        found = [value] * self.world
        if self.world > 1:
            dist.all_gather_object(found, value)
        return found

    def refuse_unlike(self, fingerprint: int, what: str) -> None:
        """Raises RanksDisagree unless all ranks have the fingerprint of the first; 63 bits at most."""
        unlike = torch.tensor(int(self.of_first(fingerprint) != fingerprint))
        if int(self.summed(unlike)) > 0:
            raise RanksDisagree(
                f"{what} differ between the {self.world} ranks of the learner, which all compute the run; something in "
                f"it depends on the process: a verifier with a time limit, for instance. Use ranks: 1"
            )


ALONE = Ranks()
"""The only process that trains."""
LIMIT = timedelta(minutes=10)
"""A rank that waits this long for another ends. One that has died is noticed at once, by its closed connection."""


def join(store: Store, *, rank: int, world: int, are_together: bool = True) -> Ranks:
    """Become one of `world` ranks that meet at `store`; collective. `are_together`: their messages stay on this
    machine."""
    if are_together:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=LIMIT)
    return Ranks(rank=rank, world=world)


def leave() -> None:
    """End what `join` began, if it did."""
    if dist.is_initialized():
        dist.destroy_process_group()
