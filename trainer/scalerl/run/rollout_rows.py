"""`rollouts.jsonl`: a few rollouts of each evaluation and of the batch trained on before it, for people to read.

Nothing that a run computes depends on the file, and nothing is drawn for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scalerl.evaluation.kept_rollouts import NUM_KEPT, evenly_placed, kept_rollout
from scalerl.objective.advantages import Rewards, advantages
from scalerl.objective.running_statistics import RunningStatistics
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Group, Judgement
from scalerl.run.metrics import Progress
from scalerl.tokens.reader import Reader

RolloutKind = Literal["trained", "held_out"]
"""Of the batch of the last optimiser step, or of an evaluation."""


@dataclass(frozen=True, kw_only=True)
class RolloutRow:
    """One kept rollout: `RolloutRow(kind="trained", progress=Progress(step=40, ...), kept={"task": ...})`."""

    kind: RolloutKind
    progress: Progress
    """Of the evaluation at which it was kept."""
    kept: Mapping[str, Any]
    """Columns of `scalerl.evaluation.kept_rollouts` and, of a trained one, those of `trained_rollouts`."""

    def to_json(self) -> dict[str, Any]:
        """The row as it is written."""
        place = {"step": self.progress.step, "compute_gpu_hours": self.progress.compute_gpu_hours}
        return {"kind": self.kind, **place, **self.kept}


def trained_rollouts(
    reader: Reader, recipe: ResolvedRecipe, groups: Sequence[Group], reading: int
) -> Iterator[dict[str, Any]]:
    """Columns of some rollouts of a batch, from all over it; another `reading` begins at another of them.

    `advantage` is that of the whole rollout, null where a token has its own or only the learner knows it. `masked` says
    why no token of the rollout is in the loss, and is null where those that the policy chose are.
    """
    flat = [(group, place) for group in groups for place in range(len(group.rollouts))]
    known = known_advantages(recipe, groups)
    for chosen in evenly_placed(len(flat), NUM_KEPT, reading):
        group, place = flat[chosen]
        rollout = group.rollouts[place]
        judged = Judgement(group.outcomes[place], group.dropped[place] if group.dropped else "")
        masked = None
        if recipe.zero_variance != "keep" and group.zero_variance:
            masked = "no variance"
        elif recipe.truncated == "mask" and rollout.truncated:
            masked = "truncated"
        yield {
            **kept_rollout(reader, rollout, judged, group.rewards[place]),
            "advantage": None if known is None else known[chosen],
            "masked": masked,
        }


def known_advantages(recipe: ResolvedRecipe, groups: Sequence[Group]) -> list[float | None] | None:
    """Of each rollout of the batch in order, None where it has no part in the loss; None where rewards alone do not
    decide them: with a critic, with a KL penalty in the reward, and with statistics of the whole run."""
    is_known = recipe.critic.type == "none" and recipe.advantage != "running"
    if not is_known or (recipe.kl.coefficient > 0 and recipe.kl.where == "reward"):
        return None
    survive = [recipe.zero_variance == "keep" or not group.zero_variance for group in groups]
    rewards = [group.rewards for group, survives in zip(groups, survive, strict=True) if survives]
    if not rewards:
        return [None for group in groups for _ in group.rollouts]
    given = Rewards.of(rewards)
    advantages_PG, _ = advantages(given, recipe.advantage, RunningStatistics())
    found = iter(advantages_PG[given.mask_PG].tolist())
    return [
        next(found) if survives else None
        for group, survives in zip(groups, survive, strict=True)
        for _ in group.rollouts
    ]
