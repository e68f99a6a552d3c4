"""Time of a training step under each way of packing, at scale `laptop`, on one thread and the same rollouts.

    python benchmarks/packing_speed.py

The batch is the first that PipelineRL-8 trains on after the warm start, prompts without variance kept. Every way has
its own learner from the same weights, one step that does not count, and then takes turns with the others; medians of
the processor time. Writes `results/packing_speed.json`.
"""

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import write_record

from ablations.study.resolve import load_resolved
from scalerl.cluster.virtual_cluster import VirtualCluster
from scalerl.generator.make import make_generator
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.build import new_policy
from scalerl.model.policy import Policy
from scalerl.prompts.mixed_pool import make_pool
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Group
from scalerl.run.warm_start import load_or_train
from scalerl.schedules import SCHEDULES
from scalerl.tasks import make_task
from scalerl.tasks.lengths import longest_prompt
from scalerl.tokens import make_tokenizer

KINDS = ("none", "sequences", "prompts")
MICRO_BATCH_TOKENS = (512, 1024, 2048)
ROUNDS = 9


def main() -> None:
    torch.set_num_threads(1)
    policy, groups = first_batch(recipe_of("none", 1024))
    learners = {}
    for kind in KINDS:
        for tokens in MICRO_BATCH_TOKENS:
            recipe = recipe_of(kind, tokens)
            own = new_policy(recipe)
            own.load_state_dict(policy.state_dict())
            learners[f"{kind}, {tokens} tokens a pass"] = TorchLearner(own, recipe)
    rounds: dict[str, list[float]] = {name: [] for name in learners}
    for number in range(ROUNDS + 1):
        for name, learner in learners.items():
            begin = time.process_time()
            learner.step(groups)
            if number > 0:
                rounds[name].append(time.process_time() - begin)
    seconds = {name: statistics.median(each) for name, each in rounds.items()}
    result = {
        "recipe": recipe_of("none", 1024).model_dump(mode="json"),
        "processor_seconds_a_step": seconds,
        "rounds": rounds,
    }
    write_record("packing_speed", result)
    print(json.dumps(seconds, indent=1))


def recipe_of(kind: str, tokens: int) -> ResolvedRecipe:
    base: dict[str, Any] = load_resolved("scalerl", "laptop").model_dump() | {"zero_variance": "keep"}
    base["optimiser"] |= {"packing": kind, "micro_batch_tokens": tokens}
    return ResolvedRecipe.model_validate(base)


def first_batch(recipe: ResolvedRecipe) -> tuple[Policy, list[Group]]:
    """The weights after the warm start, and what is trained on first."""
    task, policy = make_task(recipe.tasks[0], make_tokenizer(recipe.model)), new_policy(recipe)
    with tempfile.TemporaryDirectory() as folder:
        load_or_train(policy, task, recipe, 0, Path(folder))
    slots = recipe.cluster.generators * recipe.cluster.slots
    generator, off_clock = (
        make_generator(recipe, new_policy(recipe), slots=slots, max_prompt=longest_prompt(task)) for slots in (slots, 1)
    )
    generator.set_weights(policy.exported_weights(), version=0)
    start = new_policy(recipe)
    start.load_state_dict(policy.state_dict())
    cluster = VirtualCluster(
        recipe=recipe,
        generator=generator,
        off_clock=off_clock,
        learner=TorchLearner(policy, recipe),
        pool=make_pool(recipe, task, (0, 3)),
        task=task,
        rng=np.random.default_rng(0),
    )
    return start, SCHEDULES[recipe.off_policy.type](cluster).groups


if __name__ == "__main__":
    main()
