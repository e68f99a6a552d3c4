"""`rollouts.jsonl`: a few rollouts of each evaluation and of the preceding training batch, for people to read.

No result of the run depends on this file, and its rows are chosen without random numbers.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from scalerl.evaluation.kept_rollouts import NUM_KEPT, evenly_placed, kept_rollout
from scalerl.objective.advantages import Rewards, advantages
from scalerl.objective.running_statistics import RunningStatistics
from scalerl.objective.trained_groups import trained_groups
from scalerl.recipe import Own, ResolvedRecipe
from scalerl.rollout import Group, Judgement
from scalerl.tasks import Task
from scalerl.tokens.reader import Reader


def trained_rollouts(
    reader: Reader, recipe: ResolvedRecipe, groups: Sequence[Group], reading: int, task: Task
) -> Iterator[dict[str, Any]]:
    """Columns of some rollouts spread over a batch; another `reading` starts at another rollout.

    `advantage` belongs to the whole rollout; null if tokens have their own or only the learner knows it. `masked` gives
    the reason why no token of the rollout is in the loss; null if the tokens chosen by the policy are.
    """
    survive = trained_groups(recipe.zero_variance, groups)
    flat = [
        (group, place, is_trained)
        for group, is_trained in zip(groups, survive, strict=True)
        for place in range(len(group.rollouts))
    ]
    known = known_advantages(recipe, groups)
    for chosen in evenly_placed(len(flat), NUM_KEPT, reading):
        group, place, is_trained = flat[chosen]
        rollout = group.rollouts[place]
        judged = Judgement(group.outcomes[place], group.dropped[place] if group.dropped else "")
        masked = None
        if not is_trained:
            masked = "own rule" if isinstance(recipe.zero_variance, Own) else "no variance"
        elif recipe.truncated == "mask" and rollout.truncated:
            masked = "truncated"
        yield {
            **kept_rollout(reader, rollout, judged, group.rewards[place], task),
            "advantage": None if known is None else known[chosen],
            "masked": masked,
        }


def known_advantages(recipe: ResolvedRecipe, groups: Sequence[Group]) -> list[float | None] | None:
    """Advantage of each rollout of the batch in order, None for rollouts outside the loss.

    The result is None if rewards alone do not decide advantages: with a critic, a KL penalty in the reward, or
    statistics of the whole run.
    """
    is_known = recipe.critic.type == "none" and recipe.advantage != "running"
    if not is_known or (recipe.kl.coefficient > 0 and recipe.kl.where == "reward"):
        return None
    survive = trained_groups(recipe.zero_variance, groups)
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
