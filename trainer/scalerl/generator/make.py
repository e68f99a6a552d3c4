"""A generator for a recipe, and where its rollouts are interrupted."""

from typing import Any

import numpy as np
import torch

from scalerl.generator.request import NEVER
from scalerl.generator.torch_generator import Generator
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


def make_generator(recipe: ResolvedRecipe, task: Task, policy: Any, slots: int, seed: int) -> Generator:
    """A generator for the recipe's token limits that fits every prompt of the task."""
    longest = max(len(prompt.tokens) for prompt in (*task.train, *task.validation))
    rng = torch.Generator().manual_seed(seed)
    tokenizer = make_tokenizer(recipe.model)
    phrase = None
    if recipe.length_control.type == "interruption" and recipe.length_control.phrase is not None:
        phrase = tokenizer.encode(recipe.length_control.phrase)
    return Generator(policy, recipe.generation, tokenizer, slots=slots, max_prompt=longest, rng=rng, phrase=phrase)
