"""The parts of one run, put together from its recipe and seed. Another engine is put in here and nowhere else."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scalerl.cluster.cluster import Cluster
from scalerl.cluster.virtual_cluster import VirtualCluster
from scalerl.evaluation.downstream import DownstreamEvaluator
from scalerl.evaluation.evaluator import Evaluator
from scalerl.evaluation.held_out import HeldOutEvaluator
from scalerl.generator.generator import Generator
from scalerl.generator.make import longest_prompt, make_generator
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.build import new_policy
from scalerl.model.policy import frozen_copy
from scalerl.processes import WallCluster
from scalerl.prompts.mixed_pool import make_pool
from scalerl.recipe import ResolvedRecipe
from scalerl.run.warm_start import load_or_train
from scalerl.tasks import make_tasks
from scalerl.tokens import make_tokenizer
from scalerl.weights.shared_memory import SharedMemoryChannel

MOST_OFF_CLOCK_SLOTS = 512
"""Rows that evaluations decode at once: they cost no compute, so only the real machine cares."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What the training loop works with."""

    cluster: Cluster
    """Learner, prompts and generators."""
    held_out: Evaluator
    downstream: Evaluator
    start: Path
    """Folder of the model that the run starts from, in Hugging Face's format, with its tokenizer."""


def assemble(recipe: ResolvedRecipe, seed: int, warm_starts: Path) -> Parts:
    """The parts as they stand before the first step; trains the warm start if `warm_starts` does not hold it."""
    task = make_tasks(recipe.tasks, make_tokenizer(recipe.model))
    policy = new_policy(recipe)
    start = load_or_train(policy, task, recipe, seed, warm_starts)
    downstream = DownstreamEvaluator(recipe=recipe, seed=seed)
    on_clock, off_clock = longest_prompt(task), longest_prompt(task, *downstream.tasks)
    measured = [(task, recipe.evaluation.samples)]
    measured += [(task, of.samples) for task, of in zip(downstream.tasks, recipe.evaluation.downstream, strict=True)]
    most_samples = max(len(task.validation) * samples for task, samples in measured)

    def generator(slots: int, max_prompt: int) -> Generator:
        made = make_generator(recipe, new_policy(recipe), slots=slots, max_prompt=max_prompt)
        made.set_weights(policy.exported_weights(), version=0)
        return made

    held_out = HeldOutEvaluator(recipe=recipe, task=task, seed=seed, start=frozen_copy(policy))
    parts: dict[str, Any] = {
        "recipe": recipe,
        "learner": TorchLearner(policy, recipe),
        "pool": make_pool(recipe, task, (seed, 3)),
        "task": task,
        "rng": np.random.default_rng((seed, 4)),
        "off_clock": generator(min(MOST_OFF_CLOCK_SLOTS, most_samples), off_clock),
    }
    generators, slots = recipe.cluster.generators, recipe.cluster.slots
    if recipe.cluster.type == "virtual":
        cluster: Cluster = VirtualCluster(generator=generator(generators * slots, on_clock), **parts)
    else:
        cluster = WallCluster(
            generators=[generator(slots, on_clock) for _ in range(generators)],
            channel=SharedMemoryChannel(policy.exported_weights()),
            **parts,
        )
    return Parts(cluster=cluster, held_out=held_out, downstream=downstream, start=start)
