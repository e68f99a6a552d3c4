"""Choice of the next training prompt: shuffled epochs, and No-Positive-Resampling (ScaleRL §3.2)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scalerl.errors import Internal
from scalerl.recipe import NoPositiveResampling, Ordered, Own, Uniform
from scalerl.rollout import Group, Prompt

Key = tuple[str, str]
"""Task and id, since ids of different tasks may be equal."""


def key(prompt: Prompt) -> Key:
    """Key of a prompt in the pool."""
    return prompt.task, prompt.id


class AllRetired(Internal):
    """The policy has mastered every training prompt, so the curriculum has none to draw."""


class PromptPool:
    """Draws every prompt once per epoch in a fresh order, except those the policy has mastered."""

    def __init__(
        self, prompts: Sequence[Prompt], curriculum: NoPositiveResampling | Uniform, rng: np.random.Generator
    ) -> None:
        self.prompts = {key(prompt): prompt for prompt in prompts}
        self.curriculum, self.rng = curriculum, rng
        self.history: dict[Key, tuple[float, int]] = {}
        self.retired: set[Key] = set()
        self.epoch = 0
        self._order: list[Key] = []

    @property
    def is_exhausted(self) -> bool:
        """True if every prompt is retired for good."""
        rule = self.curriculum
        restarts = isinstance(rule, NoPositiveResampling) and rule.when_exhausted == "restart"
        return len(self.retired) == len(self.prompts) and not restarts

    def draw(self) -> Prompt:
        """The next prompt of the epoch; raises AllRetired if no prompt is left."""
        if self.is_exhausted:
            raise all_retired(self.curriculum, len(self.prompts))
        while True:
            while self._order:
                name = self._order.pop()
                if name not in self.retired:
                    return self.prompts[name]
            self._start_epoch()

    def _start_epoch(self) -> None:
        if len(self.retired) == len(self.prompts):  # and the curriculum restarts
            self.retired.clear()
            self.history.clear()
        names = [name for name in self.prompts if name not in self.retired]
        self._order = [names[i] for i in self.rng.permutation(len(names))]
        self.epoch += 1

    def record(self, group: Group) -> None:
        """Add a group to the prompt's running pass rate, and retire the prompt at the threshold."""
        name = key(group.prompt)
        total, count = self.history.get(name, (0.0, 0))
        total, count = total + group.pass_rate, count + 1
        self.history[name] = (total, count)
        rule = self.curriculum
        if (
            isinstance(rule, NoPositiveResampling)
            and count >= rule.min_groups
            and total / count >= rule.threshold - 1e-9
        ):
            self.retired.add(name)

    def state_dict(self) -> dict[str, Any]:
        """Order, history and random state."""
        return {
            "history": dict(self.history),
            "retired": sorted(self.retired),
            "epoch": self.epoch,
            "order": list(self._order),
            "rng": self.rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from a `state_dict`."""
        self.history, self.retired = dict(state["history"]), set(state["retired"])
        self.epoch, self._order = state["epoch"], list(state["order"])
        self.rng.bit_generator.state = state["rng"]


def all_retired(curriculum: NoPositiveResampling | Uniform | Ordered | Own, num_prompts: int) -> AllRetired:
    """Error for a curriculum with all of its training prompts retired."""
    assert isinstance(curriculum, NoPositiveResampling)
    return AllRetired(
        f"all {num_prompts:,} training prompts are retired: the policy solves each at a rate of at least "
        f"{curriculum.threshold:g}, and No-Positive-Resampling excludes such prompts for good. Train on more or harder "
        "prompts, or set curriculum.when_exhausted: restart to bring all of them back"
    )
