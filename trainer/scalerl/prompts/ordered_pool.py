"""Pool that draws easy prompts first, and the pool that a recipe asks for.

t = draws / (epochs x prompts), at most 1
linear        share available = start + (1 - start) t    (competence; Platanios et al. 2019, arXiv 1903.09848)
exponential   share available = start^(1 - t)            (same ends; grows by a constant factor per draw)
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from scalerl.prompts.own_pool import OwnPool
from scalerl.prompts.pool import Key, PromptPool, key
from scalerl.recipe import NoPositiveResampling, Ordered, Own, Uniform
from scalerl.rollout import Group, Prompt

PACES: dict[str, Callable[[float, float], float]] = {
    "linear": lambda start, t: start + (1 - start) * t,
    "exponential": lambda start, t: start ** (1 - t),
}
MEASURES: dict[str, Callable[[Prompt], float]] = {
    "difficulty": lambda prompt: prompt.difficulty,
    "length": lambda prompt: len(prompt.tokens),
}


def easiest_first(prompts: Sequence[Prompt], by: str) -> list[Prompt]:
    """Prompts sorted by a measure, ties by the hash of their id.

    Measures of different tasks are not comparable, so the easiest tenth is the easiest tenth of each task. Raises
    ValueError if no task has prompts that differ.
    """
    measure, of_task = MEASURES[by], defaultdict[str, list[Prompt]](list)
    for prompt in prompts:
        of_task[prompt.task].append(prompt)
    if all(len({measure(prompt) for prompt in group}) == 1 for group in of_task.values()):
        other = next(name for name in MEASURES if name != by)
        found = ", ".join(f"{measure(group[0]):g} in {task}" for task, group in of_task.items())
        raise ValueError(
            f"curriculum.by '{by}': all training prompts have the same {by} ({found}), so they have no order; use by: "
            f"{other}, tasks whose prompts differ, or curriculum uniform"
        )
    place: dict[Key, tuple[float, bytes]] = {}
    for group in of_task.values():
        group.sort(key=lambda prompt: (measure(prompt), tie_break(prompt)))
        place |= {key(p): ((rank + 0.5) / len(group), tie_break(p)) for rank, p in enumerate(group)}
    return sorted(prompts, key=lambda prompt: place[key(prompt)])


def tie_break(prompt: Prompt) -> bytes:
    """Hash of task and id: the same on every machine, and unrelated to difficulty."""
    return hashlib.sha256(f"{prompt.task}:{prompt.id}".encode()).digest()


class OrderedPool:
    """Uniform draws without replacement among the available prompts, whose number grows with every draw.

    A pass ends when every available prompt has been drawn in it; newly available prompts join the current pass.
    """

    def __init__(self, prompts: Sequence[Prompt], curriculum: Ordered, rng: np.random.Generator) -> None:
        self.prompts, self.curriculum, self.rng = easiest_first(prompts, curriculum.by), curriculum, rng
        self.retired: frozenset[Key] = frozenset()
        """Always empty: this curriculum retires no prompts."""
        self.is_exhausted = False
        """Always False, since no prompt is retired."""
        self.epoch = 0
        """Number of passes started."""
        self.num_drawn = 0
        self._left: list[int] = []
        """Indices of `prompts` not yet drawn in this pass."""
        self._known = 0
        """Number of prompts available at the last draw."""

    @property
    def num_available(self) -> int:
        """Number of prompts, from the first on, that the next draw chooses from."""
        curriculum, size = self.curriculum, len(self.prompts)
        t = min(1.0, self.num_drawn / (curriculum.epochs * size))
        share = PACES[curriculum.pace](curriculum.start, t)
        # Rounding must not add a prompt when the share is a whole number.
        return max(1, math.ceil(share * size - 1e-9))

    def draw(self) -> Prompt:
        """The next prompt."""
        available = self.num_available
        if self._left:
            self._left += range(self._known, available)
        else:
            self._left = list(range(available))
            self.epoch += 1
        self._known = available
        chosen = int(self.rng.integers(len(self._left)))
        self._left[chosen], self._left[-1] = self._left[-1], self._left[chosen]
        self.num_drawn += 1
        return self.prompts[self._left.pop()]

    def record(self, group: Group) -> None:
        """Do nothing: draws do not depend on results."""

    def state_dict(self) -> dict[str, Any]:
        """Counts, prompts left in the pass, and random state."""
        return {
            "epoch": self.epoch,
            "num_drawn": self.num_drawn,
            "left": list(self._left),
            "known": self._known,
            "rng": self.rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from a `state_dict`."""
        self.epoch, self.num_drawn = state["epoch"], state["num_drawn"]
        self._left, self._known = list(state["left"]), state["known"]
        self.rng.bit_generator.state = state["rng"]


TaskPool = PromptPool | OrderedPool | OwnPool


def pool_of(
    prompts: Sequence[Prompt], curriculum: NoPositiveResampling | Uniform | Ordered | Own, rng: np.random.Generator
) -> TaskPool:
    """Pool for `curriculum`."""
    if isinstance(curriculum, Own):
        return OwnPool(prompts, curriculum, rng)
    if isinstance(curriculum, Ordered):
        return OrderedPool(prompts, curriculum, rng)
    return PromptPool(prompts, curriculum, rng)
