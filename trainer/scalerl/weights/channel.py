"""How a policy's weights reach generators, whatever carries them.

A learner publishes a set of weights under the next publication number; a generator that is told the number receives it
and names it in its next report. Publication n is written only once every generator has reported n - 2 or later, so a
channel needs to keep the last two.
"""

from typing import Protocol

from scalerl.weights.hugging_face import Weights


class WeightChannel(Protocol):
    """Carries sets of weights from the learner to generators. A process that is started with it reads the same sets."""

    def publish(self, publication: int, version: int, weights: Weights) -> None:
        """Make a set of weights readable; `version` is the number of optimiser steps that made it."""

    def receive(self, publication: int) -> tuple[int, Weights]:
        """Version and weights of a publication. They may be views: copy them before reporting the publication."""
        ...

    def close(self) -> None:
        """Release what the channel holds outside this process."""
