"""Clusters on the wall clock for tests, with real generator processes, and what must hold of their steps."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from trainer.tiny import generator_of, maker_of, tiny_recipe

from scalerl.cluster.cluster import TrainedStep
from scalerl.generator.request import Request
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.policy import Policy
from scalerl.processes.generator_process import GeneratorWork
from scalerl.processes.launch import LocalLauncher, local_units
from scalerl.processes.process_cluster import WallCluster
from scalerl.prompts.mixed_pool import make_pool
from scalerl.recipe import ResolvedRecipe
from scalerl.schedules import SCHEDULES
from scalerl.tasks import make_task
from scalerl.tokens import make_tokenizer


def wall_recipe(generators: int = 1, slots: int = 12, **changes: Any) -> ResolvedRecipe:
    """The tiny recipe on the wall clock."""
    cluster = {"type": "wall", "generators": generators, "slots": slots}
    return ResolvedRecipe.model_validate(tiny_recipe(**changes).model_dump() | {"cluster": cluster})


def schedule_recipe(schedule: str, k: int, generators: int = 1, **changes: Any) -> ResolvedRecipe:
    """One that trains on every prompt."""
    settings = {"off_policy": {"type": schedule, "k": k}, "zero_variance": "keep", "curriculum": {"type": "uniform"}}
    return wall_recipe(generators, **settings | changes)


@contextmanager
def wall_cluster(
    recipe: ResolvedRecipe, policy: Policy, store: Any, *, launcher: Any = None, units: Any = None, state: Any = None
) -> Iterator[Any]:
    """A started cluster, which may take over a state; `drawn` are the ids of its prompts. It ends with the block."""
    task = make_task(recipe.tasks[0], make_tokenizer(recipe.model, thinks=recipe.generation.thinks))
    cluster: Any = WallCluster(
        recipe=recipe,
        launcher=launcher or LocalLauncher(),
        units=units or local_units(recipe),
        work=GeneratorWork(maker=maker_of(recipe, task, policy), store=store, threads=1),
        off_clock=generator_of(recipe, task, policy, slots=512),
        learner=TorchLearner(policy, recipe),
        pool=make_pool(recipe, task, (0, 3)),
        task=task,
        rng=np.random.default_rng(1),
    )
    cluster.drawn = watched_draws(cluster)
    try:
        if state is not None:
            cluster.load_state_dict(state)
        cluster.start()
        yield cluster
    finally:
        cluster.close()


def watched_draws(cluster: Any) -> list[str]:
    """Ids of the prompts that are drawn from here on."""
    drawn, draw = [], cluster.pool.draw

    def watched():
        prompt = draw()
        drawn.append(prompt.id)
        return prompt

    cluster.pool.draw = watched
    return drawn


def take_steps(cluster: WallCluster, count: int) -> list[TrainedStep]:
    """So many optimiser steps by the recipe's schedule."""
    return [SCHEDULES[cluster.recipe.off_policy.type](cluster) for _ in range(count)]


def killed_with_a_group(cluster: Any, number: int, *, after: int = 0) -> list[int]:
    """Kill this generator once it has `after` groups, before it can see the next one; the list gets its process."""
    killed, submit = [], cluster.submit

    def submit_and_kill(requests: list[Request]) -> None:
        process, has_some = cluster.fleet.process_ids[number], len(cluster.records[number].groups) >= after
        if killed or not has_some:
            submit(requests)
            return
        os.kill(process, signal.SIGSTOP)  # else it might have finished all of its groups when it is killed
        submit(requests)
        is_its = requests[0].group in cluster.records[number].groups
        os.kill(process, signal.SIGKILL if is_its else signal.SIGCONT)
        if is_its:
            killed.append(process)

    cluster.submit = submit_and_kill
    return killed


def versions_of(step: TrainedStep) -> set[int]:
    """Versions of the weights that made the tokens of a step."""
    return {int(version) for group in step.groups for one in group.rollouts for version in one.versions}


def assert_no_group_is_lost_or_used_twice(cluster: WallCluster, steps: list[TrainedStep], drawn: list[str]) -> None:
    """Every group that was drawn was trained on, waits or is being generated."""
    consumed = [group.prompt.id for step in steps for group in step.groups]
    inside = [group.prompt.id for _, group in cluster.ready] + [a.prompt.id for a in cluster.assembling.values()]
    inside += [group.prompt.id for batch in cluster.pending for group in batch]
    assert Counter(consumed + inside) == Counter(drawn)
