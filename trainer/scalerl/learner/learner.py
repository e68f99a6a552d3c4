"""The protocol of all learners; `torch_learner` is built in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from scalerl.durable import Part
from scalerl.model.policy import Policy
from scalerl.model.size import ModelSize
from scalerl.rollout import Group
from scalerl.weights.hugging_face import Weights
from scalerl.weights.store import WeightStore


def go_on() -> None:
    """A `check_stop` that never stops."""


@dataclass(frozen=True, kw_only=True)
class Update:
    """Work and metrics of one optimiser step; `metrics` are the learner's columns of a train row."""

    trained_tokens: int
    """Prompt and answer tokens in forward and backward passes, counted once per epoch and network."""
    context_tokens: int
    """Positions attended to, summed over those tokens."""
    scored_tokens: int = 0
    """Tokens in forward-only passes: of the reference policy, of the weights at the start of the round, and of the
    critic."""
    scored_context_tokens: int = 0
    """Positions attended to, summed over the scored tokens."""
    metrics: dict[str, Any]


class Learner(Protocol):
    """Turns groups of rollouts into new weights, one optimiser step at a time."""

    version: int
    """Number of optimiser steps taken, which numbers the weights."""
    size: ModelSize
    """Sizes that determine the compute of the policy."""
    check_stop: Callable[[], None]
    """Called between the passes of a step that has changed nothing yet: raises Cancelled to abandon the step. A learner
    of several ranks finishes its step."""

    @property
    def policy(self) -> Policy | None:
        """The policy in training if it is in this process, so that evaluations decode it without a copy; else None."""
        ...

    def step(self, groups: Sequence[Group], compute_gpu_hours: float | None = None) -> Update:
        """Train on `groups`; `compute_gpu_hours` is the run's compute so far, for schedules over compute.

        Raises Diverged if training cannot continue.
        """
        ...

    def weights(self) -> Weights:
        """The policy's weights. They may be views that the next step changes: copy what must outlast it."""
        ...

    def publish(self, store: WeightStore, publication: int) -> None:
        """Publish the policy's current weights under this number."""

    def save_model(self, folder: Path) -> None:
        """Write the policy's weights in Hugging Face's format."""

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on, without what `write_kept` writes."""
        ...

    def write_kept(self, folder: Path) -> list[Part]:
        """Write each rank's part of a sharded learner to a file in `folder`; empty list if `state_dict` has everything.

        `load_state_dict` finds the files under `kept` in the state.
        """
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from a `state_dict`."""

    def close(self) -> None:
        """End the processes that train for this one, if there are any."""
