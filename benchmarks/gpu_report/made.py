"""Recipes, policies and rollouts made of random numbers, by the trainer's own constructors."""

from typing import Any

import numpy as np
import torch
from transformers import PreTrainedConfig, Qwen3Config

from gpu_report.setting import Setting
from scalerl.generator.generator import Generator, decode_all
from scalerl.generator.request import Request
from scalerl.memory.shape import ModelShape
from scalerl.model.build import new_policy, precision_of
from scalerl.model.device import device_of
from scalerl.model.policy import Policy
from scalerl.model.transformers_load import empty
from scalerl.model.transformers_masks import head_size, kv_heads
from scalerl.recipe import LlamaModel, ResolvedRecipe
from scalerl.rollout import Group, Prompt, Rollout
from scalerl.tokens.symbols import VOCABULARY_SIZE, SymbolTokenizer

NO_FOLDER = {"type": "pretrained", "path": "random weights", "path_sha256": "0" * 64}
"""A model of `transformers` that is made here and lies in no folder."""
WIDE_HEAD = 4.0
"""Factor of the head's random weights, so that distributions are far from flat."""


class EndlessTokenizer(SymbolTokenizer):
    """Knows no end of sequence, so that every rollout has exactly the token limit."""

    eos_ids = ()

    def __init__(self) -> None:
        super().__init__(thinks=False)


def recipe_of(setting: Setting, model: LlamaModel | dict[str, Any], **changes: Any) -> ResolvedRecipe:
    """A recipe for this device; `changes` replace whole blocks."""
    plain = {
        "model": model,
        "tasks": [{"type": "k_smallest"}],
        "batch": {"prompts": 4, "generations": 4},
        "generation": {"thinking": "none", "answer": 64},
        "length_control": {"type": "none"},
        "optimiser": {"learning_rate": 1e-4, "warmup_steps": 0},
        "zero_variance": "keep",
        "cluster": {"generators": 1, "trainers": 1, "slots": 16},
        "warm_start": {"steps": 0},
        "compute_unit_gpu_hours": 1.0,
        "device": setting.device,
    }
    return ResolvedRecipe.model_validate(plain | changes)


def built_in(recipe: ResolvedRecipe, seed: int = 0, *, head: float = WIDE_HEAD) -> Policy:
    """The built-in model of a recipe, on its device."""
    return _filled(new_policy(recipe), seed, head)


def qwen3(*, hidden: int, layers: int, heads: int, mlp: int, vocabulary: int, head_size: int) -> Qwen3Config:
    """Sizes of a Qwen3 with two query heads for each key-value head and a tied head."""
    return Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=mlp,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        head_dim=head_size,
        max_position_embeddings=2**17,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )


def of_config(config: PreTrainedConfig, recipe: ResolvedRecipe, seed: int = 0, *, head: float = 1.0) -> Policy:
    """A model of `transformers` in the precision and on the device of a recipe."""
    policy = empty(config, device_of(recipe), precision_of(recipe))
    policy.recompute = recipe.optimiser.gradient_checkpointing
    return _filled(policy, seed, head)


def _filled(policy: Policy, seed: int, head: float) -> Policy:
    policy.init_weights(torch.Generator().manual_seed(seed))
    with torch.no_grad():
        policy.head_weights()[0].mul_(head)
    return policy


def shape_of_config(config: Qwen3Config) -> ModelShape:
    """The sizes that a forecast of memory needs, without memory for weights."""
    size = empty(config, torch.device("cpu"), outline=True).size
    return ModelShape(
        parameters=size.parameters,
        active_parameters=size.active_parameters,
        vocabulary=config.vocab_size,
        hidden=config.hidden_size,
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        kv_heads=kv_heads(config),
        head_size=head_size(config),
        mlp=config.intermediate_size,
        is_built_in=False,
    )


def prompts_of(number: int, length: int, seed: int = 0, *, vocabulary: int = VOCABULARY_SIZE) -> list[Prompt]:
    """Prompts of `length` random tokens."""
    rng = np.random.default_rng((seed, 1))
    return [
        Prompt(
            task="random",
            id=str(n),
            tokens=tuple(rng.integers(4, vocabulary, length).tolist()),
            answer="",
            difficulty=1,
        )
        for n in range(number)
    ]


def groups_of(prompts: list[Prompt], generations: int, lengths: tuple[int, int], vocabulary: int) -> list[Group]:
    """Groups of rollouts with random tokens and rewards of 1 and -1.

    Lengths are drawn from `lengths`, both ends included; behaviour log-probabilities are those of a flat distribution
    with some noise.
    """
    rng = np.random.default_rng((0, 2))
    groups = []
    for prompt in prompts:
        rollouts = []
        for _ in range(generations):
            length = int(rng.integers(lengths[0], lengths[1] + 1))
            flat = np.full(length, -np.log(vocabulary))
            rollouts.append(rollout_of(prompt, rng.integers(4, vocabulary, length), flat + rng.normal(0, 0.1, length)))
        groups.append(group_of(prompt, rollouts))
    return groups


def rollout_of(prompt: Prompt, tokens: np.ndarray, logprobs: np.ndarray) -> Rollout:
    """A whole rollout of the policy's own tokens [T]."""
    return Rollout(
        prompt=prompt,
        tokens=tokens.astype(np.int64),
        logprobs=logprobs.astype(np.float32),
        versions=np.zeros(len(tokens), dtype=np.int32),
        forced=np.zeros(len(tokens), dtype=np.bool_),
        truncated=False,
    )


def group_of(prompt: Prompt, rollouts: list[Rollout]) -> Group:
    """A group whose rollouts are right and wrong in turn."""
    right = [number % 2 == 0 for number in range(len(rollouts))]
    return Group(
        prompt=prompt,
        rollouts=tuple(rollouts),
        rewards=tuple(1.0 if one else -1.0 for one in right),
        outcomes=tuple("right" if one else "wrong" for one in right),
    )


def decoded(generator: Generator, prompts: list[Prompt], generations: int) -> list[Rollout]:
    """All rollouts of all prompts, prompt by prompt."""
    requests = [
        Request(prompt=prompt, group=number, index=i, seed=number * generations + i)
        for number, prompt in enumerate(prompts)
        for i in range(generations)
    ]
    finished = decode_all(generator, requests)
    return [one.rollout for one in sorted(finished, key=lambda one: (one.request.group, one.request.index))]
