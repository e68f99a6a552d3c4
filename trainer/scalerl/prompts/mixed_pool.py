"""Choice of the next training prompt in a mix: every task has its own pool and a share of the draws."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from scalerl.prompts.ordered_pool import TaskPool, pool_of
from scalerl.prompts.pool import Key, all_retired
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Group, Prompt
from scalerl.tasks import Mix, Task


class MixedPool:
    """Draws from the task furthest behind its share, so that every batch has the tasks in proportion."""

    def __init__(self, pools: Mapping[str, TaskPool], shares: Mapping[str, float]) -> None:
        self.pools, self.shares = pools, shares
        self.drawn = dict.fromkeys(pools, 0)

    @property
    def is_exhausted(self) -> bool:
        """True if no task has a prompt left."""
        return all(pool.is_exhausted for pool in self.pools.values())

    def draw(self) -> Prompt:
        """The next prompt; ties between tasks go to the first in the recipe's order.

        A task whose prompts are all retired is skipped; raises AllRetired if every task is.
        """
        total = sum(self.drawn.values()) + 1
        left = [name for name, pool in self.pools.items() if not pool.is_exhausted]
        if not left:
            raise all_retired(next(iter(self.pools.values())).curriculum, len(self.retired))
        name = max(left, key=lambda name: self.shares[name] * total - self.drawn[name])
        self.drawn[name] += 1
        return self.pools[name].draw()

    def record(self, group: Group) -> None:
        """Add a group to the history of its task."""
        self.pools[group.prompt.task].record(group)

    @property
    def retired(self) -> set[Key]:
        """Mastered prompts of all tasks."""
        return {key for pool in self.pools.values() for key in pool.retired}

    @property
    def epoch(self) -> int:
        """Number of epochs of the task that has had the fewest."""
        return min(pool.epoch for pool in self.pools.values())

    def state_dict(self) -> dict[str, Any]:
        """States of the pools, and the number of draws from each."""
        return {"pools": {name: pool.state_dict() for name, pool in self.pools.items()}, "drawn": dict(self.drawn)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from a `state_dict`."""
        for name, pool in self.pools.items():
            pool.load_state_dict(state["pools"][name])
        self.drawn = dict(state["drawn"])


AnyPool = TaskPool | MixedPool


def make_pool(recipe: ResolvedRecipe, task: Task, entropy: tuple[int, ...]) -> AnyPool:
    """Pool of a task, or pools of a mix; `entropy` seeds their orders."""
    if not isinstance(task, Mix):
        return pool_of(task.train, recipe.curriculum, np.random.default_rng(entropy))
    pools = {
        name: pool_of(one.train, recipe.curriculum, np.random.default_rng((*entropy, number)))
        for number, (name, one) in enumerate(task.tasks.items())
    }
    return MixedPool(pools, task.shares)
