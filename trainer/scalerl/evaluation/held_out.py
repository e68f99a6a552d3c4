"""Held-out pass rate: k samples of every validation prompt, off the clock and with separate random numbers."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from scalerl.evaluation.drift import Drift
from scalerl.evaluation.episode_columns import end_shares, episode_columns, mean_episode_columns
from scalerl.evaluation.kept_rollouts import kept_of_evaluation
from scalerl.evaluation.prompt_counts import PromptCounts
from scalerl.generator.make import draw_requests
from scalerl.generator.request import Finished, Request
from scalerl.prompts.judge import (
    COUNTED_OUTCOMES,
    NOT_JUDGED,
    judgement_counts,
    judgements,
    nothing_judged,
    said_faults,
)
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Judgement, Prompt, Rollout
from scalerl.tasks import Mix, Task
from scalerl.tokens.reader import Reader


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


@dataclass(kw_only=True)
class HeldOutEvaluator:
    """Measures the task's validation prompts; seed and index determine all random numbers."""

    recipe: ResolvedRecipe
    task: Task
    seed: int
    drift: Drift
    """Estimator of the KL divergence from the start of the run."""
    reader: Reader | None = None
    """Reader of rollouts to keep; without one, none are kept."""
    kept: list[dict[str, Any]] = field(default_factory=list)
    """Sample rollouts of the last evaluation, for people to read."""
    faults: list[str] = field(default_factory=list)
    """Sentences about environments that failed in the last evaluation."""

    def measure(self, sampler: Sampler, index: int) -> list[dict[str, Any]]:
        """Columns of the `eval` rows: one row for each task of a mix, then one for all; `index` counts from 0."""
        entropy = np.random.SeedSequence((self.seed, 1, index))
        finished = samples_of(self.recipe, sampler, self.task.validation, self.recipe.evaluation.samples, entropy)
        rollouts = [one.rollout for one in finished]
        firsts = [one.rollout for one in finished if one.request.index == 0]
        found = judgements(self.task, rollouts)
        judged = list(zip(rollouts, found, strict=True))
        self.faults = said_faults(judged)
        if self.reader is not None:
            self.kept = kept_of_evaluation(self.reader, self.recipe, self.task, finished, found)
        drift = {"kl_start": self.drift(firsts, self.recipe)}
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
    """Mean pass rate over judged answers, and statistics of all answers.

    VerifierFailed if none of the answers could be judged.
    """
    rollouts: list[Rollout] = [rollout for rollout, _ in judged]
    found = [(rollout.prompt.id, one.outcome == "right") for rollout, one in judged if one.outcome not in NOT_JUDGED]
    if not found:
        raise nothing_judged(task.name, [one for _, one in judged], "of an evaluation")
    return {
        "pass_rate": sum(is_right for _, is_right in found) / len(found),
        "num_prompts": len({prompt_id for prompt_id, _ in found}),
        "num_samples": len(found),
        "mean_tokens": sum(rollout.num_written for rollout in rollouts) / len(rollouts),
        "truncated": sum(rollout.truncated for rollout in rollouts) / len(rollouts),
        "interrupted": sum(bool(rollout.forced.any()) for rollout in rollouts) / len(rollouts),
        **episode_columns(rollouts),
        **end_shares(Counter(rollout.episode.end for rollout in rollouts if rollout.episode)),
        "outcomes": judgement_counts(one for _, one in judged),
        "prompt_counts": PromptCounts.of((prompt.id for prompt in task.validation), found).to_text(),
    }


def mean_of(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One row for all tasks of a mix: sums, and means weighted by the shares of the training prompts.

    num_samples = 1 / sum of share^2 / n over tasks with n samples: the number of samples of a single task with the
    same noise. If shares are proportional to n, this is the plain sum.
    """
    shares = [part["share"] for part in parts]

    def mean(column: str) -> float:
        return sum(share * part[column] for share, part in zip(shares, parts, strict=True))

    noise = sum(share**2 / part["num_samples"] for share, part in zip(shares, parts, strict=True))
    return {
        "pass_rate": min(1.0, mean("pass_rate")),  # shares may add up to one ulp more than 1
        "num_prompts": sum(part["num_prompts"] for part in parts),
        "num_samples": round(1 / noise),
        "mean_tokens": mean("mean_tokens"),
        "truncated": mean("truncated"),
        "interrupted": mean("interrupted"),
        **mean_episode_columns(parts),
        "outcomes": {name: sum(part["outcomes"][name] for part in parts) for name in COUNTED_OUTCOMES},
    }
