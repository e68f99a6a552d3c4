"""The base of all generators: `torch_generator` is built in, `vllm_generator` drives vLLM."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalerl.generator.request import Finished, Request, StepWork
from scalerl.weights.hugging_face import Weights


class Generator(ABC):
    """Turns requests into rollouts, one decode step at a time, and takes new weights between steps.

    Requests wait first in, first out for one of `slots` places. A request's seed determines everything drawn for it.
    """

    version: int
    """Version of the weights in use."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.waiting: deque[Request] = deque()
        """Requests that have not started."""
        self.unended: dict[tuple[int, int], Any] = {}
        """Episodes that may have a later turn, by group and index, with what the generator notes about each; their keys
        and values are worth keeping."""

    @property
    @abstractmethod
    def active(self) -> int:
        """Number of started and unfinished rollouts."""

    @property
    def busy(self) -> bool:
        """True if a decode step has work to do."""
        return bool(self.active or self.waiting)

    @property
    def has_room(self) -> bool:
        """True if one more request could start at once."""
        return self.active + len(self.waiting) < self.slots

    @property
    def first_waiting(self) -> int | None:
        """Lowest number of a group with no rollout started; None if every group has started."""
        return next((one.group for one in self.waiting if one.index == 0 and one.first is None), None)

    def submit(self, requests: list[Request]) -> None:
        """Queue requests; they start in order as slots become free."""
        self.waiting.extend(requests)

    @abstractmethod
    def set_weights(self, weights: Weights, version: int) -> None:
        """Decode with a copy of these weights from the next step on; rollouts in progress continue with them."""

    @abstractmethod
    def score(self, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        """Log-probability of each token but the first given the tokens before it, at temperature 1."""

    @abstractmethod
    def step(self) -> tuple[list[Finished], StepWork]:
        """Choose one token for every rollout in progress; returns the finished rollouts and the work done."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on, including weights."""

    @abstractmethod
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`: exactly, or with recomputed keys and values if it has none."""

    # For rollouts that wait for an environment:

    def forget(self, place: tuple[int, int]) -> None:
        """Note that the episode of this group and index has ended."""
        del self.unended[place]

    @property
    def awaits_environment(self) -> bool:
        """True if the only work left is to wait for environments."""
        return False

    @property
    def wakes_at(self) -> float | None:
        """Earliest time of the virtual clock at which an environment answers; None if none is to answer."""
        return None

    def tell_time(self, now: float) -> None:
        """Take note of the time of the virtual clock."""

    # For engines that work between steps, or outside of this process:

    def pause(self) -> None:
        """Choose no tokens until `resume`."""

    def resume(self) -> None:
        """Continue after `pause`; does nothing if not paused."""

    def check(self) -> None:
        """Raises Interrupted if the decoding engine has ended; `step` would too, but there may be no step to take."""

    def close(self) -> None:
        """Release resources held outside of Python."""


Maker = Callable[[], Generator]
"""Builds a generator where it is called, since it is pickled into the process it starts."""


def decode_all(
    generator: Generator, requests: list[Request], before_step: Callable[[], None] = lambda: None
) -> list[Finished]:
    """Submit requests and step until all are done; rollouts in the order in which they finished."""
    generator.submit(requests)
    finished: list[Finished] = []
    while generator.busy:
        before_step()
        finished += generator.step()[0]
    return finished
