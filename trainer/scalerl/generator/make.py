"""A generator for a recipe, and the points at which its rollouts are interrupted."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scalerl.generator.episode_generator import Clocks, EpisodeGenerator
from scalerl.generator.generator import Generator, Maker
from scalerl.generator.interruption_phrase import rollout_phrase, tokens_with_phrase
from scalerl.generator.random_numbers import draw_seeds
from scalerl.generator.request import NEVER, Request
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.generator.vllm_async import AsyncEngine
from scalerl.generator.vllm_engine import engine_arguments
from scalerl.generator.vllm_generator import VllmGenerator
from scalerl.generator.vllm_steps import SteppedEngine
from scalerl.model.adapter_weights import MergedWeights
from scalerl.model.policy import Policy
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.episodes import Episodes
from scalerl.rollout import Prompt
from scalerl.tokens import make_tokenizer
from scalerl.weights.hugging_face import FileWeights

DRIVERS = {"steps": SteppedEngine, "async": AsyncEngine}


def draw_cuts(recipe: ResolvedRecipe, rng: np.random.Generator, count: int) -> list[int]:
    """Thinking tokens after which each rollout is interrupted, uniform in [earliest, 1] of the budget (A.10)."""
    if recipe.length_control.type != "interruption":
        return [NEVER] * count
    latest = recipe.generation.thinking
    assert latest != "none", "refused when the recipe was read"
    earliest = max(1, round(recipe.length_control.earliest * latest))
    return rng.integers(earliest, latest + 1, size=count).tolist()


def draw_requests(
    recipe: ResolvedRecipe, rng: np.random.Generator, prompt: Prompt, group: int, count: int
) -> list[Request]:
    """Requests for `count` rollouts of a prompt, as one group, each with a cut and a seed of its own."""
    cuts, seeds = draw_cuts(recipe, rng, count), draw_seeds(rng, count)
    return [Request(prompt=prompt, group=group, index=i, seed=seeds[i], cut=cuts[i]) for i in range(count)]


def make_generator(
    recipe: ResolvedRecipe, policy: Policy, *, slots: int, max_prompt: int, decodes_learner: bool = False
) -> TorchGenerator:
    """The built-in generator for the recipe's token limits.

    It owns `policy`, or shares the learner's with `decodes_learner`."""
    tokenizer = make_tokenizer(recipe.model, thinks=recipe.generation.thinks)
    return TorchGenerator(
        policy,
        recipe.generation,
        tokenizer,
        slots=slots,
        max_prompt=max_prompt,
        phrase=rollout_phrase(recipe, tokenizer),
        decodes_learner=decodes_learner,
        recompute=recipe.kv == "recompute",
    )


def with_episodes(maker: Maker, recipe: ResolvedRecipe, *, clock: Clocks) -> Generator:
    """The generator that `maker` makes, which also plays the episodes of the recipe's tasks if it has some."""
    inner = maker()
    tasks = {task.title: task for task in recipe.tasks if isinstance(task, Episodes)}
    if not tasks:
        return inner
    tokenizer = make_tokenizer(recipe.model, thinks=recipe.generation.thinks)
    max_tokens = tokens_with_phrase(recipe.generation, rollout_phrase(recipe, tokenizer))
    temperature = recipe.generation.temperature
    return EpisodeGenerator(inner, tasks, tokenizer, max_tokens=max_tokens, temperature=temperature, clock=clock)


def make_vllm_generator(recipe: ResolvedRecipe, folder: Path, *, slots: int, max_prompt: int) -> VllmGenerator:
    """vLLM for the recipe's token limits, with the weights in a model's folder, to which it adds an adapter's."""
    tokenizer = make_tokenizer(recipe.model, thinks=recipe.generation.thinks)
    phrase = rollout_phrase(recipe, tokenizer)
    max_tokens = tokens_with_phrase(recipe.generation, phrase)
    arguments = engine_arguments(recipe, folder, slots=slots, positions=max_prompt + max_tokens)
    assert recipe.generator.type == "vllm"
    driver = recipe.generator.driver or ("async" if recipe.cluster.type == "wall" else "steps")
    merged: dict[str, Any] = {}
    if recipe.adapter.type == "lora":
        # The engine's own adapters stay with the request that named them; new weights must reach rollouts in progress.
        merged = {"served": partial(MergedWeights, FileWeights(folder), settings=recipe.adapter)}
    engine = DRIVERS[driver](arguments, temperature=recipe.generation.temperature, eos=tokenizer.eos_ids)
    return VllmGenerator(
        engine,
        recipe.generation,
        tokenizer,
        slots=slots,
        max_tokens=max_tokens,
        phrase=phrase,
        recompute=recipe.kv == "recompute",
        **merged,
    )
