"""The protocol for passing a policy's weights to generators.

The ranks of a learner publish a set of weights under the next publication number. A generator that is told number and
version fetches the publication and names it in its next report. Everything is checked before the first tensor is
returned, so a generator never holds part of a publication: it rejects a bad one and keeps its weights.

A store keeps the last two publications. Publication n is written only once every generator has reported or rejected
n - 2 or a later one, so nobody reads what is being overwritten.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from scalerl.errors import Internal
from scalerl.weights.hugging_face import Weights

LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")


class UnusablePublication(Internal):
    """An incomplete, damaged or deleted publication, or one of another model or version; the message says which."""


class WeightStore(ABC):
    """Sets of weights that a learner's ranks publish and generators fetch.

    A store is made with the learner's weights, which define the form of every publication. A process started with the
    store sees the same publications.
    """

    @abstractmethod
    def publish(self, publication: int, version: int, weights: Weights, *, rank: int = 0, ranks: int = 1) -> None:
        """Publish one rank's share of a set of weights; `version` is the number of optimiser steps that made it.

        A publication can be fetched once all ranks have published their shares (`names_of_rank`). Tensors are read
        once, in order, so they may be gathered on demand.
        """

    @abstractmethod
    def fetch(self, publication: int, version: int) -> Weights:
        """The whole publication, checked. The tensors may be views: copy them before reporting the publication.

        Raises UnusablePublication if a share is missing, damaged or of another version, if a tensor has the wrong shape
        or type or holds NaN or infinities, and if newer publications have replaced it.
        """

    @property
    def is_broadcasting(self) -> bool:
        """True if a publication is still on its way to some node; the next is broadcast only afterwards."""
        return False

    def broadcast(self, publication: int, version: int) -> None:
        """Begin to bring a publication to every node that reads it, once all ranks have published their shares.

        Readers of most stores look where ranks write, so there is nothing to do.
        """

    def when_at(self, node: int, then: Callable[[], None]) -> None:
        """Call `then` once the publication broadcast last can be fetched on that node, or is known not to arrive.

        That may be at once, or later in another thread.
        """
        then()

    @abstractmethod
    def close(self) -> None:
        """Release what the store holds outside this process."""


def layer_group(name: str) -> int:
    """Group of a tensor by its Hugging Face name: 1 + its layer; 0 outside the layers.

    >>> [layer_group(name) for name in ("model.embed_tokens.weight", "model.layers.3.mlp.up_proj.weight")]
    [0, 4]
    """
    found = LAYER.search(name)
    return 1 + int(found[1]) if found else 0


def names_of_rank(names: Iterable[str], rank: int, ranks: int) -> list[str]:
    """Names that `rank` publishes, in the given order: all groups g with g mod ranks = rank.

    So no rank gathers more than one layer at a time.
    """
    return [name for name in names if layer_group(name) % ranks == rank]
