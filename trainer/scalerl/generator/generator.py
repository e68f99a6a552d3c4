"""What a generator is, whatever decodes: `torch_generator` is the built-in one, `vllm_generator` drives vLLM."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from scalerl.generator.request import Finished, Request, StepWork
from scalerl.weights.hugging_face import Weights


class Generator(Protocol):
    """Turns requests into rollouts, one decode step at a time, and takes new weights between two of them.

    What it draws for a request follows from the request's seed.
    """

    version: int
    """Of the weights it decodes with."""

    @property
    def busy(self) -> bool:
        """Whether a decode step has anything to do."""
        ...

    @property
    def has_room(self) -> bool:
        """Whether it could start one more request at once."""
        ...

    @property
    def first_waiting(self) -> int | None:
        """The lowest number of a group none of whose rollouts has begun; None if every group has begun."""
        ...

    def submit(self, requests: list[Request]) -> None:
        """Queue requests; they start in order as room becomes free."""

    def set_weights(self, weights: Weights, version: int) -> None:
        """Decode with a copy of these weights from the next step on; rollouts under way continue with them."""

    def score(self, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        """Log-probability of each token but the first given those before it, at temperature 1."""
        ...

    def step(self) -> tuple[list[Finished], StepWork]:
        """Choose one token for every rollout under way; returns those that ended, and the work done."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything the next step depends on, weights included."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state_dict` was taken: exactly, or, if it has no keys and values, with new ones."""

    def pause(self) -> None:
        """Choose no token until `resume`, if it would between two steps."""

    def resume(self) -> None:
        """Go on; `step` needs no `resume` where nothing was paused."""

    def check(self) -> None:
        """RuntimeError where what it decodes with has ended: `step` would say so too, but there may be none to take."""

    def close(self) -> None:
        """Release what it holds outside of Python."""


Maker = Callable[[], Generator]
"""Builds a generator where it is called: a process is started with one by pickling it."""


def decode_all(generator: Generator, requests: list[Request]) -> list[Finished]:
    """Submit requests and step until nothing is left to do; in the order in which rollouts ended."""
    generator.submit(requests)
    finished: list[Finished] = []
    while generator.busy:
        finished += generator.step()[0]
    return finished
