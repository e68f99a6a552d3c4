"""A generator for a recipe, and where its rollouts are interrupted."""

import numpy as np

from scalerl.generator.request import NEVER
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.model.policy import Policy
from scalerl.recipe import ResolvedRecipe
from scalerl.tasks import Task
from scalerl.tokens import make_tokenizer


def draw_cuts(recipe: ResolvedRecipe, rng: np.random.Generator, count: int) -> list[int]:
    """Thinking tokens after which each rollout is interrupted, uniform in [earliest, 1] of the budget (A.10)."""
    if recipe.length_control.type != "interruption":
        return [NEVER] * count
    latest = recipe.generation.thinking
    earliest = max(1, round(recipe.length_control.earliest * latest))
    return rng.integers(earliest, latest + 1, size=count).tolist()


def longest_prompt(*tasks: Task) -> int:
    """Tokens of the longest prompt of these tasks, held-out ones included."""
    return max(len(prompt.tokens) for task in tasks for prompt in (*task.train, *task.validation))


def make_generator(recipe: ResolvedRecipe, policy: Policy, *, slots: int, max_prompt: int) -> TorchGenerator:
    """The built-in generator for the recipe's token limits; it decodes with `policy`, which becomes its own."""
    tokenizer = make_tokenizer(recipe.model)
    phrase = None
    if recipe.length_control.type == "interruption" and recipe.length_control.phrase is not None:
        phrase = tokenizer.encode(recipe.length_control.phrase)
    return TorchGenerator(policy, recipe.generation, tokenizer, slots=slots, max_prompt=max_prompt, phrase=phrase)
