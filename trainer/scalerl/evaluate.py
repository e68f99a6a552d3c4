"""Held-out pass rate: k samples of every validation prompt, off the clock and off the training random numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from scalerl.batch import Outcome, Prompt, Rollout
from scalerl.cluster import draw_cuts, make_generator
from scalerl.generator import Request
from scalerl.judge import NOT_JUDGED, OUTCOMES, nothing_judged, verdicts
from scalerl.model import Policy, new_policy
from scalerl.recipe import ResolvedRecipe
from scalerl.tasks import Task

SLOTS = 512
"""Rows decoded at once; evaluation costs no virtual time, so only the real machine cares."""


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
        self._generator.set_weights(policy.state_dict(), version=0)
        entropy = np.random.SeedSequence((self.seed, 1, index))
        rollouts = self._sample(self.task.validation, self.recipe.evaluation.samples, entropy)
        return {"task": self.task.name, **columns(self.task.name, rollouts, verdicts(self.task, rollouts))}

    def _sample(self, prompts: Sequence[Prompt], samples: int, entropy: np.random.SeedSequence) -> list[Rollout]:
        """So many rollouts of each prompt, in the order in which they ended."""
        generator = self._generator
        rng = np.random.default_rng(entropy)
        generator.rng = torch.Generator().manual_seed(int(entropy.generate_state(1)[0]))
        for number, prompt in enumerate(prompts):
            cuts = draw_cuts(self.recipe, rng, samples)
            generator.submit([Request(prompt=prompt, group=number, index=i, cut=cuts[i]) for i in range(samples)])
        rollouts = []
        while generator.busy:
            rollouts += [finished.rollout for finished in generator.step()[0]]
        return rollouts


def columns(name: str, rollouts: Sequence[Rollout], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The mean pass rate over the answers of task `name` that were judged, and what is known of all of them."""
    judged = [
        (rollout.prompt.id, outcome)
        for rollout, outcome in zip(rollouts, outcomes, strict=True)
        if outcome not in NOT_JUDGED
    ]
    if not judged:
        raise nothing_judged(name, outcomes, "of an evaluation")
    return {
        "pass_rate": sum(outcome == "right" for _, outcome in judged) / len(judged),
        "num_prompts": len({prompt_id for prompt_id, _ in judged}),
        "num_samples": len(judged),
        "mean_tokens": sum(len(rollout.tokens) for rollout in rollouts) / len(rollouts),
        "truncated": sum(rollout.truncated for rollout in rollouts) / len(rollouts),
        "interrupted": sum(bool(rollout.forced.any()) for rollout in rollouts) / len(rollouts),
        "outcomes": {outcome: outcomes.count(outcome) for outcome in OUTCOMES},
    }
