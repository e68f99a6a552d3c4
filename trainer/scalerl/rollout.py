"""Records passed between prompts, generator, verifier and learner; numpy only, so they can be sent to any process."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Outcome = Literal["right", "wrong", "unparsable", "timed_out", "crashed"]
"""Verdict on one answer. The last two mean that the verifier failed, so the answer was not judged."""


@dataclass(frozen=True)
class Judgement:
    """A verifier's judgement of one answer: `Judgement("right", dropped="the unit 'apples'")`."""

    outcome: Outcome
    dropped: str = ""
    """Text ignored when reading the answer, which makes the outcome doubtful; empty if the whole answer was read."""
    score: float | None = None
    """Partial score in [0, 1] of an answer that is not right; None if the task has none."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One question, identified by its task and id.

    Prompt(task="k_smallest", id="3:k9a2", tokens=(8, 4, 25, 14, 15, 2), answer="29a", difficulty=4)
    """

    task: str
    id: str
    tokens: tuple[int, ...] = field(compare=False)
    answer: Any = field(compare=False)
    """Reference that the task's verifier compares a response with."""
    difficulty: float = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One sampled answer, token by token: who chose each token, its log-probability, and the weights in use."""

    prompt: Prompt
    tokens: NDArray[np.int64]
    logprobs: NDArray[np.float32]
    """Behaviour log-probability of each token; 0 for forced tokens."""
    versions: NDArray[np.int32]
    """Weight version that chose each token."""
    forced: NDArray[np.bool_]
    """True for tokens forced by the interruption rather than sampled from the policy."""
    truncated: bool
    """True if the token limit came before the end of the sequence."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """All rollouts from one draw of a prompt, with rewards and outcomes in the same order."""

    prompt: Prompt
    rollouts: tuple[Rollout, ...]
    rewards: tuple[float, ...]
    outcomes: tuple[Outcome, ...]
    dropped: tuple[str, ...] = ()
    """Text ignored in each answer (see `Judgement`); no entries if every answer was read whole."""

    @property
    def start_version(self) -> int:
        """Oldest weights that chose a token of this group."""
        return min(int(rollout.versions[0]) for rollout in self.rollouts)

    @property
    def pass_rate(self) -> float:
        """Share of right answers."""
        return sum(outcome == "right" for outcome in self.outcomes) / len(self.outcomes)

    @property
    def zero_variance(self) -> bool:
        """True if every rollout got the same reward."""
        return len(set(self.rewards)) == 1
