"""Units on nodes of this machine that publish a rank's share of weights, or fetch what is published."""

import os
from collections import UserDict
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch

from scalerl.weights.store import UnusablePublication, WeightStore, names_of_rank

NUMBERS = 1_000_000
"""In each tensor: more than the buffers of a connection hold."""
LAYERS = 4


def large_weights(seed):
    """Four tensors of 4 MB, one for each layer."""
    draw = torch.Generator().manual_seed(seed)
    return {f"model.layers.{layer}.weight": torch.randn(NUMBERS, generator=draw) for layer in range(LAYERS)}


class Deadly(UserDict):
    """Weights whose second tensor kills the process that asks for it."""

    def items(self):  # pyright: ignore[reportIncompatibleMethodOverride]
        first, *_ = self.data.items()
        yield first
        os.kill(os.getpid(), 9)


@dataclass(frozen=True, kw_only=True)
class RankUnit:
    """Publishes its share of the weights of a version when it is told a publication."""

    store: WeightStore
    rank: int
    ranks: int

    def __call__(self, connection: Connection) -> None:
        while True:
            publication, is_to_die = connection.recv()
            weights = large_weights(publication)
            own = {name: weights[name] for name in names_of_rank(weights, self.rank, self.ranks)}
            given = Deadly(own) if is_to_die else own
            self.store.publish(publication, publication, given, rank=self.rank, ranks=self.ranks)
            connection.send("published")


@dataclass(frozen=True, kw_only=True)
class ReaderUnit:
    """Says of a publication whether it has the weights of its version, or why it cannot be used."""

    store: WeightStore

    def __call__(self, connection: Connection) -> None:
        while True:
            publication = connection.recv()
            try:
                found = self.store.fetch(publication, publication)
            except UnusablePublication as error:
                connection.send(str(error))
            else:
                expected = large_weights(publication)
                assert found.keys() == expected.keys()
                same = all(torch.equal(found[name], expected[name]) for name in found)
                connection.send("whole" if same else "other weights")
