"""The protocol of evaluations: requests to a sampler, and rows of results. None builds a generator."""

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from scalerl.generator.make import draw_requests
from scalerl.generator.request import Finished, Request
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Prompt


class Sampler(Protocol):
    """Decodes requests with the weights to be measured. A cluster is a sampler, off its clock."""

    def sample(self, requests: list[Request]) -> list[Finished]:
        """Rollouts of these requests, in the order in which they finished."""
        ...


class Evaluator(Protocol):
    """Measures a sampler's weights; seed and index determine all random numbers."""

    def measure(self, sampler: Sampler, index: int) -> Iterable[dict[str, Any]]:
        """Columns of the rows of measurement `index`, counted from 0."""
        ...


def samples_of(
    recipe: ResolvedRecipe,
    sampler: Sampler,
    prompts: Iterable[Prompt],
    num_samples: int,
    entropy: np.random.SeedSequence,
) -> list[Finished]:
    """`num_samples` rollouts of each prompt, in the order in which they finished; `entropy` determines all draws."""
    rng = np.random.default_rng(entropy)
    requests = []
    for number, prompt in enumerate(prompts):
        requests += draw_requests(recipe, rng, prompt, number, num_samples)
    return sampler.sample(requests)
