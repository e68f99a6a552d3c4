"""What evaluations ask of a sampler. None builds a generator."""

from collections.abc import Iterable
from typing import Protocol

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
