"""How a policy's weights reach generators, whatever carries them.

The ranks of a learner publish a set of weights under the next publication number; a generator that is told the number
and the version fetches it, and names it in its next report. Everything that a publication promises is checked before
the first tensor is handed out, so a generator never holds half of one: it refuses and goes on with the weights it has.

A store keeps the last two publications. Publication n is written only once every generator has reported n - 2 or
later, or has refused it, so nobody reads what is being overwritten.
"""

from typing import Protocol

from scalerl.errors import Internal
from scalerl.weights.hugging_face import Weights


class UnusablePublication(Internal):
    """A publication that is torn, damaged, gone, or of another model or version; the message says which and where."""


class WeightStore(Protocol):
    """Sets of weights that a learner's ranks publish and generators fetch.

    It is made with the learner's weights, which say what every publication must look like. A process that is started
    with it sees the same publications.
    """

    def publish(self, publication: int, version: int, weights: Weights, *, rank: int = 0, ranks: int = 1) -> None:
        """Make one rank's share of a set of weights readable; `version` is the number of optimiser steps that made it.

        The publication can be fetched once all ranks have published theirs (`layer_groups.names_of_rank`). The
        tensors are read once, in order, so they may be gathered as they are asked for.
        """

    def fetch(self, publication: int, version: int) -> Weights:
        """The whole of a publication, checked. The tensors may be views: copy them before reporting the publication.

        UnusablePublication where a share is missing, damaged or not of this version, where a tensor has another shape
        or type than the learner's, or holds NaN or infinities, and where newer publications have taken its place.
        """
        ...

    def close(self) -> None:
        """Release what the store holds outside this process."""
