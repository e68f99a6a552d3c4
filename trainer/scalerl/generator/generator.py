"""The protocol of all generators: `torch_generator` is built in, `vllm_generator` drives vLLM."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from scalerl.generator.request import Finished, Request, StepWork
from scalerl.weights.hugging_face import Weights


class Generator(Protocol):
    """Turns requests into rollouts, one decode step at a time, and takes new weights between steps.

    A request's seed determines everything drawn for it.
    """

    version: int
    """Version of the weights in use."""

    @property
    def busy(self) -> bool:
        """True if a decode step has work to do."""
        ...

    @property
    def has_room(self) -> bool:
        """True if one more request could start at once."""
        ...

    @property
    def first_waiting(self) -> int | None:
        """Lowest number of a group with no rollout started; None if every group has started."""
        ...

    def submit(self, requests: list[Request]) -> None:
        """Queue requests; they start in order as room becomes free."""

    def set_weights(self, weights: Weights, version: int) -> None:
        """Decode with a copy of these weights from the next step on; rollouts in progress continue with them."""

    def score(self, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        """Log-probability of each token but the first given the tokens before it, at temperature 1."""
        ...

    def step(self) -> tuple[list[Finished], StepWork]:
        """Choose one token for every rollout in progress; returns the finished rollouts and the work done."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on, including weights."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`: exactly, or, if it has no keys and values, with recomputed ones."""

    def pause(self) -> None:
        """Choose no tokens until `resume`; only matters if the generator works between steps."""

    def resume(self) -> None:
        """Continue after `pause`; harmless without one."""

    def check(self) -> None:
        """Raises RuntimeError if the decoding engine has ended; `step` would too, but there may be no step to take."""

    def close(self) -> None:
        """Release resources held outside of Python."""


Maker = Callable[[], Generator]
"""Builds a generator where it is called, since it is pickled into the process it starts."""


def decode_all(generator: Generator, requests: list[Request]) -> list[Finished]:
    """Submit requests and step until all are done; rollouts in the order in which they finished."""
    generator.submit(requests)
    finished: list[Finished] = []
    while generator.busy:
        finished += generator.step()[0]
    return finished
