"""Tries one optimiser step with the recipe's own shapes, before anything depends on it."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from scalerl.checks.finding import Finding
from scalerl.checks.lengths import most_tokens
from scalerl.checks.memory import memory_available, prompt_lengths, size_text
from scalerl.checks.subject import Subject
from scalerl.learner.torch_learner import TorchLearner
from scalerl.memory.forecast import peak_memory
from scalerl.model.build import new_policy
from scalerl.model.policy import Policy
from scalerl.processes.launch import local_units
from scalerl.quantities import counted
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Group, Prompt, Rollout
from scalerl.tokens import Tokenizer

MOST_FLOPS = 1e12
"""FLOPs above which a step is tried with fewer and shorter rollouts: some ten seconds on one or two CPU cores."""
FEWEST_TOKENS = 8
MOST_GROUPS_TRIED = 20
"""Maximum number of steps to find the loss scale of FP16."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """Size of the step to be tried: `Tried(groups=2, rollouts=8, answer=11)`."""

    groups: int
    rollouts: int
    """Rollouts per group."""
    answer: int
    """Answer tokens per rollout."""


def check_step(subject: Subject, say: Callable[[str], None]) -> Iterator[Finding]:
    """Yields one line: whether a step runs and is finite, and its seconds."""
    prompts = [prompt for made in subject.tasks if not made.is_downstream for prompt in made.prompts()]
    if not prompts:
        return
    assert not isinstance(subject.tokenizer, str)
    total, free = peak_memory(subject.recipe, prompt_lengths(subject)).total, memory_available()
    if total > free:
        found = f"not tried: a run takes {size_text(total)} of memory, but only {size_text(free)} is free"
        yield Finding(part="step", check="optimiser", level="warning", found=found)
        return
    try:
        yield _try_step(subject.recipe, prompts, subject.tokenizer, say)
    except (ValueError, RuntimeError, MemoryError, OSError, KeyError, ImportError) as error:
        found = f"one optimiser step fails: {type(error).__name__}: {error}"
        yield Finding(part="step", check="optimiser", level="error", found=found, remedy="see the message")


def _try_step(
    recipe: ResolvedRecipe, prompts: list[Prompt], tokenizer: Tokenizer, say: Callable[[str], None]
) -> Finding:
    say("taking one optimiser step")
    torch.set_num_threads(recipe.threads)
    if recipe.cluster.type == "wall":
        local_units(recipe)
    policy = first_policy(recipe)
    longest = max(prompts, key=lambda prompt: len(prompt.tokens))
    answer = max(len(longest.tokens), recipe.most_before_turn) + most_tokens(recipe, tokenizer) - len(longest.tokens)
    tried = part_of_step(recipe, policy.size.active_parameters, len(longest.tokens), answer)
    groups = random_groups(tried, longest, tokenizer.size)
    learner = TorchLearner(policy, recipe)
    started = time.perf_counter()
    update = learner.step(groups, 0.0)
    for _ in range(MOST_GROUPS_TRIED if recipe.parameters == "fp16" else 0):
        if not update.metrics["skipped"]:
            break
        started = time.perf_counter()
        update = learner.step(groups, 0.0)
    seconds = time.perf_counter() - started
    loss, norm = update.metrics["loss"], update.metrics["grad_norm"]
    if update.metrics["skipped"] or not (math.isfinite(loss) and math.isfinite(norm)):
        found = f"the loss or the gradient of one step is not finite: loss {loss}, gradient norm {norm}"
        remedy = "look for non-finite values in the weights, or use parameters: fp32"
        return Finding(part="step", check="optimiser", level="error", found=found, remedy=remedy)
    whole = recipe.batch.prompts * recipe.batch.generations * (len(longest.tokens) + answer)
    part = tried.groups * tried.rollouts * (len(longest.tokens) + tried.answer)
    size = (
        f"{counted(tried.groups * tried.rollouts, 'rollout')} of {counted(len(longest.tokens) + tried.answer, 'token')}"
    )
    found = f"a step on {size} takes {seconds:.2g} s here; loss {loss:.3g} and gradient norm {norm:.3g} are finite"
    if part < whole:
        found += f"; a whole batch of longest rollouts has {whole / part:,.0f} times the tokens"
    return Finding(part="step", check="optimiser", level="ok", found=found)


def first_policy(recipe: ResolvedRecipe) -> Policy:
    """The policy with a pretrained model's weights, or with random ones."""
    policy = new_policy(recipe)
    if recipe.model.type == "pretrained":
        policy.load_weights(Path(recipe.model.path))
        if drawn := policy.initial_adapter(torch.Generator().manual_seed(0)):
            policy.import_weights(drawn)
    else:
        policy.init_weights(torch.Generator().manual_seed(0))
    return policy


def part_of_step(recipe: ResolvedRecipe, parameters: int, prompt: int, answer: int) -> Tried:
    """The whole batch if it takes at most MOST_FLOPS, else fewer groups, else two shorter rollouts of one group.

    Counts 6 FLOPs per parameter and token, for each epoch.
    """
    most = int(MOST_FLOPS / (6 * parameters * recipe.epochs))
    rollouts = recipe.batch.generations
    groups = min(recipe.batch.prompts, most // (rollouts * (prompt + answer)))
    if groups >= 1:
        return Tried(groups=groups, rollouts=rollouts, answer=answer)
    return Tried(groups=1, rollouts=2, answer=min(answer, max(FEWEST_TOKENS, most // 2 - prompt)))


def random_groups(tried: Tried, prompt: Prompt, vocabulary: int) -> list[Group]:
    """Groups of random tokens; every other rollout is right, so that each group has a learning signal."""
    rng = np.random.default_rng(0)
    return [
        Group(
            prompt=prompt,
            rollouts=tuple(_random_rollout(rng, prompt, tried.answer, vocabulary) for _ in range(tried.rollouts)),
            rewards=tuple(1.0 if i % 2 else -1.0 for i in range(tried.rollouts)),
            outcomes=tuple("right" if i % 2 else "wrong" for i in range(tried.rollouts)),
        )
        for _ in range(tried.groups)
    ]


def _random_rollout(rng: np.random.Generator, prompt: Prompt, length: int, vocabulary: int) -> Rollout:
    return Rollout(
        prompt=prompt,
        tokens=rng.integers(vocabulary, size=length),
        logprobs=np.full(length, -math.log(vocabulary), dtype=np.float32),
        versions=np.zeros(length, dtype=np.int32),
        forced=np.zeros(length, dtype=np.bool_),
        truncated=False,
    )
