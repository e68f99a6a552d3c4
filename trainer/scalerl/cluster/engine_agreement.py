"""Checks that a generator of another engine agrees with the learner: both score the same tokens after an update.

Weights that arrive complete may still be served wrongly: an engine has its own layout, and part of the old weights may
remain in it. Rollouts would not show this.
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
"""Largest mean difference of log-probabilities in nats: if everything is FP32 (True), or products or the head are
rounded (False). Another summation order gives less than 1e-5, rounding to BF16 in other places 0.015."""


@dataclass(frozen=True, kw_only=True)
class WeightProbe:
    """Tokens and the learner's scores: `WeightProbe(tokens=(8, 4, 25), expected=array([-1.2, -0.3]))`."""

    tokens: tuple[int, ...]
    expected: NDArray[np.float32]
    """Log-probability of each token but the first."""

    def gap(self, generator: Generator) -> float:
        """Mean difference in nats between the generator's log-probabilities and the learner's."""
        return float(np.abs(generator.score(self.tokens) - self.expected).mean())


def probe_tokens(recipe: ResolvedRecipe, prompts: Sequence[Prompt]) -> tuple[int, ...]:
    """Tokens of the first prompts, as many as any generator of the recipe can read at once."""
    size = min(NUM_TOKENS, recipe.generation.max_tokens)
    return tuple(islice(chain.from_iterable(prompt.tokens for prompt in prompts), size))


def refuse_to_disagree(recipe: ResolvedRecipe, gap: float, version: int) -> None:
    """Raises Rejected if the gap exceeds the tolerance for the recipe's precision or is NaN."""
    tolerance = TOLERANCES[recipe.parameters == recipe.logits == "fp32"]
    if not gap <= tolerance:
        raise Rejected(
            f"with weights {version} the generator's log-probabilities differ from the learner's by {gap:.3g} nats, "
            f"in the mean over the same tokens; rounding explains at most {tolerance:g}. The engine does not serve the "
            f"weights it was given: use `generator: {{type: torch}}`, or another version of the engine"
        )
