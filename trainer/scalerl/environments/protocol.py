"""What an environment does. A class of the user's own has these methods:

    class Doubler:
        def __init__(self, level: int = 1): ...          # `settings` of the task
        def start(self, seed: int, row: dict) -> str:    # the first text that the policy reads
        def act(self, text: str) -> Reply:               # what its answer leads to
        def close(self) -> None: ...                     # optional

An environment may draw from `random` and NumPy's global generator: both are seeded at the start of each episode, and
are its own. Equal seeds and equal answers must give equal texts, since an interrupted episode is resumed by repeating
its answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from scalerl.rollout import End


@dataclass(frozen=True)
class Reply:
    """What an environment says to one turn: `Reply("Higher.")`, or `Reply("You found it.", reward=1.0, end="won")`."""

    text: str
    reward: float = 0.0
    """Reward of this turn."""
    end: End | None = None
    """Why the episode ends here; None if it goes on."""
    seconds: float = field(default=0.0, compare=False)
    """Time that the environment took; filled in by its process."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """Where an episode starts: `Start(seed=17, text="1-32")`."""

    seed: int
    row: Mapping[str, Any] = field(default_factory=dict)
    """Row of the task's file; empty without a file."""
    text: str = ""
    """What the environment said first when the task was made."""


class Environment(Protocol):
    """One episode at a time, from a seed, and from a row of the task's file if it has one."""

    def start(self, seed: int, row: Mapping[str, Any]) -> str:
        """Begin an episode; returns the first text."""
        ...

    def act(self, text: str) -> Reply:
        """Take the policy's text of one turn, without its thinking."""
        ...

    def close(self) -> None:
        """Release what the episode holds."""
        ...


class CanDemonstrate(Protocol):
    """Optional: an environment that knows acceptable answers, for demonstrations in the warm start."""

    def demonstrate(self) -> str:
        """An answer that may be given now, drawn from `random`; a warm start needs the form, not the best play."""
        ...
