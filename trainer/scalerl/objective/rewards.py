"""Rewards of +-1 (ScaleRL §2) and DAPO's length penalty on right answers (arXiv 2503.14476)."""

from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Judgement


def length_penalty(length: int, max_length: float, cache: float) -> float:
    """clip((L_max - |y|) / L_cache - 1, -1, 0): 0 up to L_max - L_cache tokens, -1 from L_max on."""
    return min(0.0, max(-1.0, (max_length - length) / cache - 1.0))


def reward(judged: Judgement, length: int, recipe: ResolvedRecipe) -> float:
    """1 for a right answer, plus the length penalty if the recipe has one; -1 for any other, or 2 score - 1."""
    if judged.outcome != "right":
        return 2 * (judged.score or 0.0) - 1
    if recipe.length_control.type != "penalty":
        return 1.0
    max_length = recipe.generation.max_tokens
    return 1.0 + length_penalty(length, max_length, recipe.length_control.cache * max_length)
