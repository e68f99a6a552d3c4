"""Task files that are measured at every n-th evaluation, off the clock, and never trained on."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scalerl.evaluation.held_out import Sampler, reading_columns, samples_of
from scalerl.prompts.judge import NOT_JUDGED, judgements
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Outcome
from scalerl.tasks import Task


def pass_at_k(num_samples: int, num_right: int, k: int) -> float:
    """Unbiased probability that one of k samples is right: 1 - C(n - c, k) / C(n, k) (arXiv 2107.03374, eq. 1)."""
    return 1.0 - math.comb(num_samples - num_right, k) / math.comb(num_samples, k)


def mean_pass_at_k(outcomes: Sequence[Sequence[Outcome]], k: int) -> float | None:
    """Mean of pass@k over problems, from the judged answers of each; None if no problem has k of them."""
    judged = [[outcome for outcome in of_problem if outcome not in NOT_JUDGED] for of_problem in outcomes]
    estimates = [pass_at_k(len(one), one.count("right"), k) for one in judged if len(one) >= k]
    return sum(estimates) / len(estimates) if estimates else None


@dataclass(kw_only=True)
class DownstreamEvaluator:
    """Measures the task files of `evaluation.downstream`; a seed determines all random numbers."""

    recipe: ResolvedRecipe
    seed: int
    tasks: Sequence[Task]
    """Tasks of `evaluation.downstream`, in its order."""
    kept: Sequence[dict[str, Any]] = ()
    """No rollouts of task files are kept."""
    faults: Sequence[str] = ()
    """Task files have no environment."""

    def measure(self, sampler: Sampler, index: int) -> Iterator[dict[str, Any]]:
        """Columns of the `downstream` rows due at evaluation `index`, counted from 0."""
        for number, (settings, task) in enumerate(zip(self.recipe.evaluation.downstream, self.tasks, strict=True)):
            if index % settings.every == 0:
                entropy = np.random.SeedSequence((self.seed, 6, number, index))
                yield self._measure(sampler, task, settings.samples, (1, *settings.k), entropy)

    def _measure(
        self, sampler: Sampler, task: Task, samples: int, ks: Sequence[int], entropy: np.random.SeedSequence
    ) -> dict[str, Any]:
        rollouts = [one.rollout for one in samples_of(self.recipe, sampler, task.validation, samples, entropy)]
        judged = list(zip(rollouts, judgements(task, rollouts), strict=True))
        by_problem: dict[str, list[Outcome]] = {prompt.id: [] for prompt in task.validation}
        for rollout, one in judged:
            by_problem[rollout.prompt.id].append(one.outcome)
        row = {"task": task.name, **reading_columns(task, judged)}
        row[f"mean_at_{samples}"] = row["pass_rate"]
        return row | {f"pass_at_{k}": mean_pass_at_k([*by_problem.values()], k) for k in ks}
