"""Whether a generator of another engine computes what the learner computes: both score the same tokens after an update.

Weights that arrive whole may still be served wrongly: an engine has a layout of its own, and a part of the old weights
may stay in it. No rollout would say so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from scalerl.errors import Rejected
from scalerl.generator.generator import Generator
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Prompt

NUM_TOKENS = 64
TOLERANCES = {True: 1e-3, False: 0.1}
"""Nats between the log-probs of a token, in the mean: where all is FP32, and where products or the head are rounded.
Sums in another order give less than 1e-5, rounding to BF16 in other places 0.015."""


@dataclass(frozen=True, kw_only=True)
class WeightProbe:
    """Tokens and what the learner makes of them: `WeightProbe(tokens=(8, 4, 25), expected=array([-1.2, -0.3]))`."""

    tokens: tuple[int, ...]
    expected: NDArray[np.float32]
    """Log-probability of each but the first."""

    def gap(self, generator: Generator) -> float:
        """Nats between the generator's log-probs and these, in the mean."""
        return float(np.abs(generator.score(self.tokens) - self.expected).mean())


def probe_tokens(recipe: ResolvedRecipe, prompts: Sequence[Prompt]) -> tuple[int, ...]:
    """Of the first prompts, as many as any generator of the recipe can read at once."""
    size = min(NUM_TOKENS, recipe.generation.max_tokens)
    return tuple(islice(chain.from_iterable(prompt.tokens for prompt in prompts), size))


def refuse_to_disagree(recipe: ResolvedRecipe, gap: float, version: int) -> None:
    """Raises Rejected where the gap is beyond the tolerance of the recipe's precision, or not a number."""
    tolerance = TOLERANCES[recipe.parameters == recipe.logits == "fp32"]
    if not gap <= tolerance:
        raise Rejected(
            f"with weights {version} the generator's log-probs are {gap:.3g} nats from the learner's, in the mean over "
            f"the same tokens; up to {tolerance:g} would be rounding. Its engine serves other weights than it was "
            f"given: use `generator: {{type: torch}}`, or another version of the engine"
        )
