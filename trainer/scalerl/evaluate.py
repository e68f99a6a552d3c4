"""Held-out pass rate: k samples of every validation prompt, off the clock and off the training random numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from scalerl.cluster import draw_cuts, make_generator
from scalerl.generator import Request
from scalerl.model import Policy, new_policy
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
        rollouts = []
        while generator.busy:
            rollouts += [finished.rollout for finished in generator.step()[0]]
        right = sum(self.task.verify(rollout.prompt, rollout.tokens.tolist()) == "right" for rollout in rollouts)
        return {
            "task": self.task.name,
            "pass_rate": right / len(rollouts),
            "num_prompts": len(prompts),
            "num_samples": len(rollouts),
            "mean_tokens": sum(len(rollout.tokens) for rollout in rollouts) / len(rollouts),
            "truncated": sum(rollout.truncated for rollout in rollouts) / len(rollouts),
            "interrupted": sum(bool(rollout.forced.any()) for rollout in rollouts) / len(rollouts),
        }
