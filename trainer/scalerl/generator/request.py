"""What a generator is asked for and what comes of it."""

from dataclasses import dataclass

import numpy as np

from scalerl.rollout import Prompt, Rollout

NEVER = np.iinfo(np.int32).max
"""A thinking limit that no rollout reaches."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One rollout asked for: `Request(prompt=p, group=17, index=3, seed=9183520441, cut=12)`."""

    prompt: Prompt
    group: int
    index: int
    """Place of the rollout in its group."""
    seed: int
    """Of all that is drawn for it, below 2^64: the same request gets the same rollout from the same weights."""
    cut: int = NEVER
    """Thinking tokens after which the end of thinking is forced."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A request and what came of it."""

    request: Request
    rollout: Rollout


@dataclass(frozen=True, kw_only=True)
class StepWork:
    """What one decode step did, for the cost model."""

    sequences: int
    prefill_tokens: int
    prefill_context_tokens: int
    """Positions attended to, summed over those tokens."""
    context_tokens: int
    """Cached positions read, summed over sequences."""
