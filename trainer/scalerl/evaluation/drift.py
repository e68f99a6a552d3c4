"""Drift of the measured policy from the run's start: KL(policy || start), in nats per token.

The mean of the k3 estimate over the tokens that the policy chose; None without such tokens or if it is not finite.
"""

import math
from collections.abc import Callable

import numpy as np
import torch

from scalerl.generator.generator import Generator
from scalerl.learner.batch import batch_of
from scalerl.model.policy import Policy
from scalerl.objective.kl import token_kl
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Prompt, Rollout
from scalerl.weights.hugging_face import Weights

START_VERSION = 0
"""Version number of the weights at the start of a run."""
Drift = Callable[[list[Rollout], ResolvedRecipe], float | None]
"""Estimates drift from the rollouts' behaviour log-probabilities and those of the start for the same tokens."""


@torch.no_grad()
def policy_drift(rollouts: list[Rollout], recipe: ResolvedRecipe, *, start: Policy) -> float | None:
    """Estimate by a copy of the initial policy, in passes of `micro_batch_tokens`, packed as in training."""
    groups: dict[Prompt, int] = {}
    group_of = [groups.setdefault(rollout.prompt, len(groups)) for rollout in rollouts]
    batch = batch_of(rollouts, group_of).to(start.device)
    total = 0.0
    for rows in batch.micro_batches(recipe.packing, recipe.optimiser.micro_batch_tokens):
        part = batch.part(rows)
        packing = part.packing(recipe.packing)
        start_BT = start.score(part.tokens_BT, recipe.generation.temperature, packing=packing).logprobs_BT
        total += float(token_kl("k3", part.behaviour_BT.double(), start_BT.double(), part.mask_BT).sum())
    return _mean(total, batch.num_own)


def generator_drift(
    rollouts: list[Rollout], recipe: ResolvedRecipe, *, generator: Generator, start: Callable[[], Weights]
) -> float | None:
    """Estimate by a generator that loads the initial weights and keeps them, if no device has room for a second policy.

    Generators score at temperature 1, so there is no estimate for other temperatures.
    """
    if recipe.generation.temperature != 1.0:
        return None
    generator.set_weights(start(), START_VERSION)
    total, num_tokens = 0.0, 0
    for rollout in rollouts:
        own = ~rollout.forced & rollout.written
        scores = generator.score((*rollout.prompt.tokens, *rollout.tokens.tolist()))[-len(own) :]
        of_policy, of_start = (torch.from_numpy(each.astype(np.float64)) for each in (rollout.logprobs, scores))
        total += float(token_kl("k3", of_policy, of_start, torch.from_numpy(own)).sum())
        num_tokens += int(own.sum())
    return _mean(total, num_tokens)


def _mean(total: float, num_tokens: int) -> float | None:
    return total / num_tokens if num_tokens and math.isfinite(total) else None
