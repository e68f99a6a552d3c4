"""`rollouts.jsonl`: a few rollouts of each evaluation and of the preceding training batch, for people to read.

No result of the run depends on this file, and its rows are chosen without random numbers.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from scalerl.evaluation.kept_rollouts import NUM_KEPT, evenly_placed, kept_rollout
from scalerl.objective.advantages import advantages
from scalerl.objective.running_statistics import RunningStatistics
from scalerl.objective.trained_groups import trained_groups
from scalerl.objective.turn_credit import credited_rewards
from scalerl.recipe import Own, ResolvedRecipe
from scalerl.rollout import Group, Judgement
from scalerl.tasks import Task
from scalerl.tokens.reader import Reader


def trained_rollouts(
    reader: Reader, recipe: ResolvedRecipe, groups: Sequence[Group], reading: int, task: Task
) -> Iterator[dict[str, Any]]:
    """Columns of some rollouts spread over a batch; another `reading` starts at another rollout.

    `advantage` belongs to the whole rollout; null if tokens have their own or only the learner knows it. With credit by
    turn each turn has its own. `masked` gives
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
        row = kept_rollout(reader, rollout, judged, group.rewards[place], task)
        advantage = None if known is None else known[chosen]
        if isinstance(advantage, tuple):
            for turn in row["turns"]:
                if "turn" in turn:
                    turn["advantage"] = advantage[turn["turn"] - 1]
            advantage = None
        yield {**row, "advantage": advantage, "masked": masked}


def known_advantages(recipe: ResolvedRecipe, groups: Sequence[Group]) -> list[float | tuple[float, ...] | None] | None:
    """Advantage of each rollout of the batch in order, or of each of its turns; None for rollouts outside the loss.

    The result is None if rewards alone do not decide advantages: with a critic, a KL penalty in the reward, or
    statistics of the whole run.
    """
    is_known = recipe.critic.type == "none" and recipe.advantage != "running"
    if not is_known or (recipe.kl.coefficient > 0 and recipe.kl.where == "reward"):
        return None
    survive = trained_groups(recipe.zero_variance, groups)
    survivors = [group for group, survives in zip(groups, survive, strict=True) if survives]
    if not survivors:
        return [None for group in groups for _ in group.rollouts]
    given, credited = credited_rewards(survivors)
    advantages_PG, _ = advantages(given, recipe.advantage, RunningStatistics())
    of_rollout: dict[int, list[float]] = {}
    for one in credited:
        of_rollout.setdefault(one.rollout, []).append(float(advantages_PG[one.row, one.column]))
    found = iter(of_rollout.values())
    return [
        (tuple(next(found)) if group.is_credited_by_turn else next(found)[0]) if survives else None
        for group, survives in zip(groups, survive, strict=True)
        for _ in group.rollouts
    ]
