"""What travels between generator, verifier and learner.

Axes: P prompts, G rollouts of one prompt, B rollouts in a batch, T tokens, V vocabulary, S decoding slots, D head size.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Outcome = Literal["right", "wrong", "unparsable"]


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One question: `Prompt(task="k_smallest", id="3:k9a2", tokens=(2, 17, 9), answer="9", difficulty=4)`."""

    task: str
    id: str
    tokens: tuple[int, ...]
    answer: str
    difficulty: int


@dataclass(frozen=True, kw_only=True)
class Rollout:
    """One sampled answer, token by token: who chose each token, how likely it was, and which weights were in use."""

    prompt: Prompt
    tokens: NDArray[np.int64]
    logprobs: NDArray[np.float32]
    """Behaviour log-probability of each token, 0 where forced."""
    versions: NDArray[np.int32]
    """Weight version that chose each token."""
    forced: NDArray[np.bool_]
    """True for tokens the interruption wrote, which are not the policy's own."""
    truncated: bool
    """The token limit came before the end of the sequence."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """All rollouts of one drawing of a prompt, with rewards and outcomes in the same order."""

    prompt: Prompt
    rollouts: tuple[Rollout, ...]
    rewards: tuple[float, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def start_version(self) -> int:
        """Oldest weights that chose a token of this group."""
        return min(int(rollout.versions[0]) for rollout in self.rollouts)

    @property
    def pass_rate(self) -> float:
        """Share of right answers."""
        return sum(outcome == "right" for outcome in self.outcomes) / len(self.outcomes)

    @property
    def zero_variance(self) -> bool:
        """Every rollout got the same reward."""
        return len(set(self.rewards)) == 1


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Rollouts as right-padded tensors, prompt and answer in one row."""

    tokens_BT: Tensor
    mask_BT: Tensor
    """True on tokens the policy chose: neither prompt, nor forced, nor padding."""
    behaviour_BT: Tensor
    """Behaviour log-probabilities, 0 off the mask."""
    group_B: Tensor
    """Index of the prompt's group."""
    length_B: Tensor
    """Tokens of prompt and answer together."""


def make_batch(groups: list[Group]) -> Batch:
    """Rollouts of `groups` in order, as tensors on the CPU."""
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    lengths = [len(rollout.prompt.tokens) + len(rollout.tokens) for rollout in rollouts]
    shape = (len(rollouts), max(lengths))
    tokens = np.zeros(shape, dtype=np.int64)
    mask = np.zeros(shape, dtype=np.bool_)
    behaviour = np.zeros(shape, dtype=np.float32)
    for row, (rollout, length) in enumerate(zip(rollouts, lengths, strict=True)):
        start = len(rollout.prompt.tokens)
        tokens[row, :start] = rollout.prompt.tokens
        tokens[row, start:length] = rollout.tokens
        mask[row, start:length] = ~rollout.forced
        behaviour[row, start:length] = np.where(rollout.forced, 0.0, rollout.logprobs)
    group_of = [index for index, group in enumerate(groups) for _ in group.rollouts]
    return Batch(
        tokens_BT=torch.from_numpy(tokens),
        mask_BT=torch.from_numpy(mask),
        behaviour_BT=torch.from_numpy(behaviour),
        group_B=torch.tensor(group_of),
        length_B=torch.tensor(lengths),
    )
