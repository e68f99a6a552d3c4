"""Held-out pass rate: k samples of every validation prompt, off the clock and off the training random numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalerl.evaluation.drift import Drift
from scalerl.evaluation.evaluator import Sampler, samples_of
from scalerl.evaluation.kept_rollouts import KeptRollouts
from scalerl.evaluation.prompt_counts import PromptCounts
from scalerl.prompts.judge import COUNTED_OUTCOMES, NOT_JUDGED, judgement_counts, judgements, nothing_judged
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Judgement, Rollout
from scalerl.tasks import Mix, Task


@dataclass(kw_only=True)
class HeldOutEvaluator:
    """Measures on the task's validation prompts; evaluation n of a seed always draws the same numbers."""

    recipe: ResolvedRecipe
    task: Task
    seed: int
    drift: Drift
    """The KL of what is measured to what the run started from."""
    kept: KeptRollouts | None = None
    """Takes some of the rollouts, for people to read."""

    def measure(self, sampler: Sampler, index: int) -> list[dict[str, Any]]:
        """Columns of the `eval` rows: those of each task of a mix, then of all; `index` counts evaluations from 0."""
        entropy = np.random.SeedSequence((self.seed, 1, index))
        finished = samples_of(self.recipe, sampler, self.task.validation, self.recipe.evaluation.samples, entropy)
        rollouts = [one.rollout for one in finished]
        firsts = [one.rollout for one in finished if one.request.index == 0]
        found = judgements(self.task, rollouts)
        judged = list(zip(rollouts, found, strict=True))
        if self.kept is not None:
            self.kept.keep(finished, found)
        drift = {"kl_start": self.drift(firsts)}
        if not isinstance(self.task, Mix):
            return [{"task": self.task.name, **reading_columns(self.task, judged), **drift}]
        parts = [
            {
                "task": name,
                "share": share,
                **reading_columns(task, [one for one in judged if one[0].prompt.task == name]),
            }
            for (name, task), share in zip(self.task.tasks.items(), self.task.shares.values(), strict=True)
        ]
        return [*parts, {"task": self.task.name, **mean_of(parts), **drift}]


def reading_columns(task: Task, judged: Sequence[tuple[Rollout, Judgement]]) -> dict[str, Any]:
    """The mean pass rate over the answers that were judged, and what is known of all of them."""
    rollouts: list[Rollout] = [rollout for rollout, _ in judged]
    found = [(rollout.prompt.id, one.outcome == "right") for rollout, one in judged if one.outcome not in NOT_JUDGED]
    if not found:
        raise nothing_judged(task.name, [one for _, one in judged], "of an evaluation")
    return {
        "pass_rate": sum(is_right for _, is_right in found) / len(found),
        "num_prompts": len({prompt_id for prompt_id, _ in found}),
        "num_samples": len(found),
        "mean_tokens": sum(len(rollout.tokens) for rollout in rollouts) / len(rollouts),
        "truncated": sum(rollout.truncated for rollout in rollouts) / len(rollouts),
        "interrupted": sum(bool(rollout.forced.any()) for rollout in rollouts) / len(rollouts),
        "outcomes": judgement_counts(one for _, one in judged),
        "prompt_counts": PromptCounts.of((prompt.id for prompt in task.validation), found).to_text(),
    }


def mean_of(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The tasks of a mix in one row: means weighted with the shares that training prompts are drawn in, and sums.

    num_samples = 1 / sum of share^2 / n over tasks with n samples: as many of one task would have the same noise. It is
    the plain sum where shares are in proportion to n.
    """
    shares = [part["share"] for part in parts]

    def mean(column: str) -> float:
        return sum(share * part[column] for share, part in zip(shares, parts, strict=True))

    noise = sum(share**2 / part["num_samples"] for share, part in zip(shares, parts, strict=True))
    return {
        "pass_rate": min(1.0, mean("pass_rate")),  # shares may add up to an ulp more than 1
        "num_prompts": sum(part["num_prompts"] for part in parts),
        "num_samples": round(1 / noise),
        "mean_tokens": mean("mean_tokens"),
        "truncated": mean("truncated"),
        "interrupted": mean("interrupted"),
        "outcomes": {name: sum(part["outcomes"][name] for part in parts) for name in COUNTED_OUTCOMES},
    }
