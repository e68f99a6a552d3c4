"""Draws prompts with the probabilities that a user's own function gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalerl.prompts.pool import Key, key
from scalerl.recipe import Own
from scalerl.recipe.own_function import OwnFailed, call_own
from scalerl.rollout import Group, Prompt


@dataclass(frozen=True, kw_only=True)
class CurriculumInputs:
    """Facts about the N training prompts of a task before a draw, always in the same order."""

    difficulty_N: NDArray[np.float64]
    """Difficulty that the task gives."""
    length_N: NDArray[np.int64]
    """Tokens of the prompt."""
    draws_N: NDArray[np.int64]
    """Draws so far."""
    groups_N: NDArray[np.int64]
    """Groups whose answers are judged; fewer than the draws, since answers come later."""
    pass_rate_N: NDArray[np.float64]
    """Mean pass rate of these groups; 0 without groups."""


@dataclass(frozen=True, kw_only=True)
class CurriculumOutputs:
    """Weight of each prompt in the next draw; 0 for a prompt that is not drawn."""

    weight_N: NDArray[np.float64]


class OwnPool:
    """Draws every prompt with a probability in proportion to its weight; no prompt is retired."""

    def __init__(self, prompts: Sequence[Prompt], curriculum: Own, rng: np.random.Generator) -> None:
        self.prompts, self.curriculum, self.rng = tuple(prompts), curriculum, rng
        self.retired: frozenset[Key] = frozenset()
        """Always empty: a weight of 0 may become another one."""
        self.is_exhausted = False
        """Always False, since no prompt is retired."""
        self._places = {key(prompt): place for place, prompt in enumerate(self.prompts)}
        size = len(self.prompts)
        self._draws, self._groups = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._total = np.zeros(size)
        """Sum of the pass rates of the groups."""

    @property
    def epoch(self) -> int:
        """Number of draws of the prompt with the fewest."""
        return int(self._draws.min())

    def inputs(self) -> CurriculumInputs:
        """Inputs of the function; the arrays are copies."""
        return CurriculumInputs(
            difficulty_N=np.array([prompt.difficulty for prompt in self.prompts], np.float64),
            length_N=np.array([len(prompt.tokens) for prompt in self.prompts], np.int64),
            draws_N=self._draws.copy(),
            groups_N=self._groups.copy(),
            pass_rate_N=self._total / np.maximum(self._groups, 1),
        )

    def draw(self) -> Prompt:
        """The next prompt; OwnFailed if the weights give no probabilities."""
        weight_N = weights_of_prompts(self.curriculum, self.inputs())
        chosen = int(self.rng.choice(len(self.prompts), p=weight_N / weight_N.sum()))
        self._draws[chosen] += 1
        return self.prompts[chosen]

    def record(self, group: Group) -> None:
        """Add a group to the pass rate of its prompt."""
        place = self._places[key(group.prompt)]
        self._groups[place] += 1
        self._total[place] += group.pass_rate

    def state_dict(self) -> dict[str, Any]:
        """Counts of every prompt, and random state."""
        counts = {"draws": self._draws.copy(), "groups": self._groups.copy(), "total": self._total.copy()}
        return {**counts, "rng": self.rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from a `state_dict`."""
        self._draws, self._groups = state["draws"].copy(), state["groups"].copy()
        self._total = state["total"].copy()
        self.rng.bit_generator.state = state["rng"]


def weights_of_prompts(curriculum: Own, given: CurriculumInputs) -> NDArray[np.float64]:
    """The function's weights [N]; OwnFailed unless they are finite, at least 0, and not all 0."""
    found: Any = call_own(curriculum, given)
    start = f"{curriculum.file}: {curriculum.function_name} returns"
    if not isinstance(found, CurriculumOutputs):
        raise OwnFailed(f"{start} a {type(found).__name__}; must return CurriculumOutputs(weight_N=...)")
    weight_N = np.asarray(found.weight_N, np.float64)
    if weight_N.shape != given.draws_N.shape:
        raise OwnFailed(f"{start} weight_N of shape {weight_N.shape}; its axes are N={len(given.draws_N)}")
    if not np.isfinite(weight_N).all() or (weight_N < 0).any() or not weight_N.any():
        raise OwnFailed(f"{start} weights that are NaN, infinite or below 0, or all 0; at least one must be above 0")
    return weight_N
