"""Requests to a generator, and their results."""

from dataclasses import dataclass

import numpy as np

from scalerl.rollout import Prompt, Rollout

NEVER = np.iinfo(np.int32).max
"""A limit that no rollout reaches."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Request for one rollout: `Request(prompt=p, group=17, index=3, seed=9183520441, cut=12)`."""

    prompt: Prompt
    group: int
    index: int
    """Index of the rollout in its group."""
    seed: int
    """Seed of everything drawn for it, below 2^64; the same request and weights give the same rollout."""
    cut: int = NEVER
    """Thinking tokens after which the end of thinking is forced."""
    most: int = NEVER
    """Tokens after which the rollout is cut, if fewer than the limits of `generation`."""
    first: "Request | None" = None
    """Request for the first turn, if this is for a later one of an episode."""

    @property
    def place(self) -> tuple[int, int]:
        """Group and index."""
        return self.group, self.index


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A request and its rollout."""

    request: Request
    rollout: Rollout


@dataclass(frozen=True, kw_only=True)
class StepWork:
    """Work done by one decode step or several, for the cost model."""

    sequences: int = 0
    prefill_tokens: int = 0
    prefill_context_tokens: int = 0
    """Positions attended to, summed over the prefill tokens."""
    context_tokens: int = 0
    """Cached positions read, summed over sequences."""

    def __add__(self, other: "StepWork") -> "StepWork":
        return StepWork(**{name: done + getattr(other, name) for name, done in vars(self).items()})
