"""Rewards of +-1 (ScaleRL §2) with DAPO's length penalty on right answers (arXiv 2503.14476), or the user's own."""

from dataclasses import dataclass

from scalerl.recipe import Own, ResolvedRecipe
from scalerl.recipe.own_function import call_own
from scalerl.rollout import Judgement, Outcome


@dataclass(frozen=True, kw_only=True)
class RewardInputs:
    """Facts about one answer that its reward may depend on."""

    outcome: Outcome
    """Verdict: `right`, `wrong` or `unparsable`; answers that were not judged get no reward."""
    score: float | None
    """Partial score in [0, 1] of an answer that is not right; None if the task has none."""
    length: int
    """Tokens of the answer, with its thinking; of an episode, those of its turns."""
    max_length: int
    """Maximum number of tokens in an answer, or in all turns of an episode."""
    earned: float
    """Sum of the rewards that an environment gave; without one, 1 for a right answer and 2 score - 1 for others."""


@dataclass(frozen=True, kw_only=True)
class RewardOutputs:
    """The reward of one answer."""

    reward: float


def length_penalty(length: int, max_length: float, cache: float) -> float:
    """clip((L_max - |y|) / L_cache - 1, -1, 0): 0 up to L_max - L_cache tokens, -1 from L_max on."""
    return min(0.0, max(-1.0, (max_length - length) / cache - 1.0))


def verdict_reward(given: RewardInputs, *, cache: float | None = None) -> RewardOutputs:
    """What was earned: 1 for a right answer, otherwise 2 score - 1; in an episode, what the environment gave.

    A right answer or a won episode also has the length penalty if `cache` (share of the limit) is given.
    """
    if given.outcome != "right" or cache is None:
        return RewardOutputs(reward=given.earned)
    return RewardOutputs(reward=given.earned + length_penalty(given.length, given.max_length, cache * given.max_length))


def reward(judged: Judgement, length: int, recipe: ResolvedRecipe, task: str = "") -> float:
    """The reward of an answer of this many tokens to a prompt of `task`, by the recipe's rule or the user's own."""
    by_verdict = 1.0 if judged.outcome == "right" else 2 * (judged.score or 0.0) - 1
    given = RewardInputs(
        outcome=judged.outcome,
        score=judged.score,
        length=length,
        max_length=recipe.most_written_in(task),
        earned=by_verdict if judged.earned is None else judged.earned,
    )
    if isinstance(recipe.reward, Own):
        return call_own(recipe.reward, given).reward
    control = recipe.length_control
    return verdict_reward(given, cache=control.cache if control.type == "penalty" else None).reward
