"""The smallest run that still does everything: one layer of width 16, lists of two or three symbols, 4 x 4 rollouts."""

from functools import partial

import numpy as np
import torch
from torch import Tensor

from scalerl.cluster.virtual_cluster import VirtualCluster
from scalerl.generator.generator import Maker, decode_all
from scalerl.generator.make import make_generator, with_episodes
from scalerl.generator.request import Finished, Request
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.learner.torch_learner import TorchLearner
from scalerl.memory.forecast import PromptLengths
from scalerl.model.build import new_policy
from scalerl.model.llama import Llama
from scalerl.model.policy import Policy
from scalerl.objective.aggregation import AggregationInputs, token_weights
from scalerl.objective.losses import LossInputs, token_loss
from scalerl.prompts.mixed_pool import make_pool
from scalerl.recipe import Correction, ResolvedRecipe
from scalerl.recipe.axes import Cispo, Dapo, Grpo, Gspo
from scalerl.recipe.correction import NoCorrection
from scalerl.rollout import Group, Outcome, Prompt, Rollout
from scalerl.tasks import Task, all_tasks
from scalerl.tasks.lengths import longest_prompt
from scalerl.tokens import make_tokenizer
from scalerl.tokens.symbols import VOCABULARY_SIZE

SETTINGS = {
    "model": {"hidden": 16, "layers": 1, "heads": 2, "mlp": 16},
    "tasks": [
        {
            "type": "k_smallest",
            "symbols": 8,
            "min_length": 2,
            "max_length": 3,
            "train_prompts": 600,
            "validation_prompts": 8,
        }
    ],
    "warm_start": {"steps": 40, "batch": 16, "learning_rate": 1e-2, "noise": 0.3},
    "batch": {"prompts": 4, "generations": 4},
    "generation": {"thinking": 4, "answer": 4},
    "optimiser": {"learning_rate": 1e-3, "warmup_steps": 2},
    "cluster": {
        "generators": 8,
        "trainers": 2,
        "slots": 3,
        "parameters_stand_for": 1e6,
        "tokens_stand_for": 1000,
        "attention": {"width_stands_for": 4000, "cache_stands_for": 1000},
    },
    "evaluation": {"every": 0.2, "samples": 2},
    "compute_unit_gpu_hours": 1.0,
}


def tiny_recipe(**changes) -> ResolvedRecipe:
    """The tiny run's recipe; each of `changes` is laid over the block of its name."""
    merged = dict(SETTINGS)
    for name, change in changes.items():
        base = merged.get(name)
        merged[name] = {**base, **change} if isinstance(base, dict) and isinstance(change, dict) else change
    return ResolvedRecipe.model_validate(merged)


def random_policy(recipe: ResolvedRecipe, seed: int = 0) -> Llama:
    """A policy with wide random weights, so that its distributions are far from flat."""
    policy = new_policy(recipe)
    assert isinstance(policy, Llama)
    generator = torch.Generator().manual_seed(seed)
    policy.init_weights(generator)
    with torch.no_grad():
        policy.head *= 4
        for parameter in policy.parameters():
            if parameter.dim() == 1:  # norms that differ from 1, or a missing norm would go unseen
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
    return policy


def fixed_policy(recipe: ResolvedRecipe, logits: dict[int, float]) -> Llama:
    """A policy with these logits after every context; tokens not named are never sampled."""
    policy = new_policy(recipe)
    assert isinstance(policy, Llama)
    column = torch.full((VOCABULARY_SIZE,), -1e4)
    for token, logit in logits.items():
        column[token] = logit
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.zero_()
        # The residual stream is all ones, so its RMS norm is all ones too, and the head reads off its first column.
        policy.embedding.fill_(1.0)
        policy.norm.fill_(1.0)
        policy.head[:, 0] = column
    return policy


def generator_of(recipe: ResolvedRecipe, task: Task, policy: Policy, *, slots: int) -> TorchGenerator:
    """A generator that decodes with a copy of the policy's weights."""
    generator = make_generator(recipe, new_policy(recipe), slots=slots, max_prompt=longest_prompt(task))
    generator.set_weights(policy.exported_weights(), version=0)
    return generator


def maker_of(recipe: ResolvedRecipe, task: Task, policy: Policy) -> Maker:
    """Makes such a generator, with the cluster's slots, in the process that calls it."""
    longest = PromptLengths.of(recipe, task, ()).trained
    made = partial(make_generator, recipe, policy, slots=recipe.cluster.slots, max_prompt=longest)
    return partial(with_episodes, made, recipe, clock=recipe.cluster.type)


class PolicySampler:
    """Decodes what an evaluation asks for with the weights that a policy has at that moment."""

    def __init__(self, recipe: ResolvedRecipe, task: Task, policy: Policy) -> None:
        self.policy = policy
        self.generator = generator_of(recipe, task, policy, slots=512)

    def sample(self, requests: list[Request]) -> list[Finished]:
        """The rollouts of these requests, in the order in which they ended."""
        self.generator.set_weights(self.policy.exported_weights(), version=0)
        return decode_all(self.generator, requests)


def make_cluster(recipe: ResolvedRecipe, policy: Policy, seed: int = 0) -> VirtualCluster:
    """A cluster whose generators and trainer start from `policy`."""
    task = all_tasks(recipe.tasks, (), make_tokenizer(recipe.model)).trained
    slots = recipe.cluster.generators * recipe.cluster.slots
    return VirtualCluster(
        recipe=recipe,
        generator=generator_of(recipe, task, policy, slots=slots),
        off_clock=generator_of(recipe, task, policy, slots=512),
        learner=TorchLearner(policy, recipe),
        pool=make_pool(recipe, task, (seed,)),
        task=task,
        rng=np.random.default_rng(seed + 1),
    )


def make_prompt(name: str, tokens: tuple[int, ...] = (6, 4, 7, 8, 2)) -> Prompt:
    """A prompt whose answer no test asks for."""
    return Prompt(task="k_smallest", id=name, tokens=tokens, answer="a", difficulty=2)


def make_group(name: str, tokens: list[list[int]], logprobs: list[list[float]], rewards: list[float], **flags) -> Group:
    """A group written out: tokens and behaviour log-probs of each rollout; `forced` and `tokens_of_prompt` optional."""
    prompt = make_prompt(name, flags.get("tokens_of_prompt", (6, 4, 7, 8, 2)))
    forced = flags.get("forced", [[False] * len(row) for row in tokens])
    rollouts = tuple(
        Rollout(
            prompt=prompt,
            tokens=np.array(row, dtype=np.int64),
            logprobs=np.array(logprob, dtype=np.float32),
            versions=np.zeros(len(row), dtype=np.int32),
            forced=np.array(mark, dtype=np.bool_),
            truncated=False,
        )
        for row, logprob, mark in zip(tokens, logprobs, forced, strict=True)
    )
    statuses: tuple[Outcome, ...] = tuple("right" if reward > 0 else "wrong" for reward in rewards)
    return Group(prompt=prompt, rollouts=rollouts, rewards=tuple(rewards), outcomes=statuses)


def token_loss_of(
    settings: Cispo | Dapo | Grpo | Gspo,
    logprobs_BT: Tensor,
    behaviour_BT: Tensor,
    advantage: Tensor,
    mask_BT: Tensor,
    start_BT: Tensor | None = None,
    correction: Correction | None = None,
) -> tuple[Tensor, Tensor]:
    """Loss and clip of every token; the advantages may be [B, 1]."""
    given = LossInputs(
        logprobs_BT=logprobs_BT,
        behaviour_BT=behaviour_BT,
        advantage_BT=advantage.expand_as(mask_BT),
        mask_BT=mask_BT,
        start_BT=start_BT,
    )
    found, _ = token_loss(settings, correction or NoCorrection(), given)
    return found.loss_BT, found.clipped_BT


TOKEN_LIMIT = 10


def weights_of(aggregation: str, mask: Tensor, group: Tensor) -> Tensor:
    """Weights of the tokens [B, T] of rollouts whose prompts have these numbers."""
    return token_weights(aggregation, AggregationInputs(mask_BT=mask, group_B=group, token_limit=TOKEN_LIMIT))
