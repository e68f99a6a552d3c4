"""What a learner is, whatever trains: `torch_learner` is the built-in one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from scalerl.durable import Part
from scalerl.errors import Rejected
from scalerl.model.policy import Policy
from scalerl.model.size import ModelSize
from scalerl.rollout import Group
from scalerl.weights.hugging_face import Weights
from scalerl.weights.store import WeightStore


class Diverged(Rejected):
    """The loss or its gradient was not finite for several steps in a row."""


@dataclass(frozen=True, kw_only=True)
class Update:
    """What one optimiser step did; `metrics` are the learner's columns of a train row."""

    trained_tokens: int
    """Prompt and answer tokens that went forward and backward, counted once per epoch and network."""
    context_tokens: int
    """Positions attended to, summed over those tokens."""
    scored_tokens: int = 0
    """Tokens that went forward only: through the reference policy, the weights of the start of the round, a critic."""
    scored_context_tokens: int = 0
    """Positions attended to, summed over those tokens."""
    metrics: dict[str, Any]


class Learner(Protocol):
    """Turns groups of rollouts into new weights, one optimiser step at a time."""

    version: int
    """Optimiser steps taken; it numbers the weights."""

    @property
    def policy(self) -> Policy | None:
        """What it trains, if that lies in this process: evaluations then decode it without a copy."""
        ...

    @property
    def size(self) -> ModelSize:
        """What work on its policy costs."""
        ...

    def step(self, groups: Sequence[Group], compute_gpu_hours: float | None = None) -> Update:
        """Train on `groups`; `compute_gpu_hours` is the run's compute so far, for schedules with a horizon in compute.

        Raises Diverged when training cannot continue.
        """
        ...

    def weights(self) -> Weights:
        """The policy's weights. They may be views that the next step changes: copy what must outlast it."""
        ...

    def publish(self, store: WeightStore, publication: int) -> None:
        """Make the policy's present weights the publication of this number."""

    def save_model(self, folder: Path) -> None:
        """Write the policy's weights in Hugging Face's format."""

    def state_dict(self) -> dict[str, Any]:
        """Everything the next step depends on, without what `write_kept` writes."""
        ...

    def write_kept(self, folder: Path) -> list[Part]:
        """What each rank of a sharded learner keeps, as a file of its own in `folder`; empty where `state_dict` is all.

        `load_state_dict` finds the files under `kept` in the state.
        """
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where `state_dict` was taken."""
