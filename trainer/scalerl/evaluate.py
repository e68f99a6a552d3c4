"""Held-out pass rate: k samples of every validation prompt, off the clock and off the training random numbers."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from scalerl.batch import Rollout, batch_of
from scalerl.cluster import draw_cuts, make_generator
from scalerl.generator import Request
from scalerl.kl import token_kl
from scalerl.model import new_policy
from scalerl.packing import padded_micro_batches
from scalerl.policy import Policy
from scalerl.recipe import ResolvedRecipe
from scalerl.tasks import Task

SLOTS = 512
"""Rows decoded at once; evaluation costs no compute, so only the real machine cares."""


@dataclass(kw_only=True)
class Evaluator:
    """Measures a policy on the task's validation prompts; evaluation n of a seed always draws the same numbers."""

    recipe: ResolvedRecipe
    task: Task
    seed: int
    start: Policy
    """What the run started from, for the KL of what is measured to it."""

    def __post_init__(self) -> None:
        self._generator = make_generator(self.recipe, self.task, new_policy(self.recipe), SLOTS, seed=0)

    def measure(self, policy: Policy, index: int) -> dict[str, Any]:
        """Columns of an `eval` row; `index` counts evaluations of the run from 0."""
        samples = self.recipe.evaluation.samples
        generator = self._generator
        generator.set_weights(policy.state_dict(), version=0)
        entropy = np.random.SeedSequence((self.seed, 1, index))
        rng = np.random.default_rng(entropy)
        generator.rng = torch.Generator().manual_seed(int(entropy.generate_state(1)[0]))
        prompts = self.task.validation
        for number, prompt in enumerate(prompts):
            cuts = draw_cuts(self.recipe, rng, samples)
            generator.submit([Request(prompt=prompt, group=number, index=i, cut=cuts[i]) for i in range(samples)])
        rollouts, firsts = [], []
        while generator.busy:
            finished = generator.step()[0]
            rollouts += [one.rollout for one in finished]
            firsts += [one.rollout for one in finished if one.request.index == 0]
        right = sum(self.task.verify(rollout.prompt, rollout.tokens.tolist()) == "right" for rollout in rollouts)
        return {
            "task": self.task.name,
            "pass_rate": right / len(rollouts),
            "num_prompts": len(prompts),
            "num_samples": len(rollouts),
            "mean_tokens": sum(len(rollout.tokens) for rollout in rollouts) / len(rollouts),
            "truncated": sum(rollout.truncated for rollout in rollouts) / len(rollouts),
            "interrupted": sum(bool(rollout.forced.any()) for rollout in rollouts) / len(rollouts),
            "kl_start": self.kl_from_start(firsts),
        }

    @torch.no_grad()
    def kl_from_start(self, rollouts: list[Rollout]) -> float | None:
        """Mean k3 estimate of KL(policy || start) in nats a token, over the tokens that the policy chose.

        None where there is none, or where it is no number that the run log takes.
        """
        batch = batch_of(rollouts, list(range(len(rollouts))))
        total = 0.0
        for rows in padded_micro_batches(batch.length_B, self.recipe.optimiser.micro_batch_tokens):
            part = batch.part(rows)
            start_BT, _ = self.start.token_logprobs(part.tokens_BT, self.recipe.generation.temperature)
            total += float(token_kl("k3", part.behaviour_BT.double(), start_BT.double(), part.mask_BT).sum())
        num_tokens = int(batch.mask_BT.sum())
        return total / num_tokens if num_tokens and math.isfinite(total) else None
