"""Groups of rollouts as the tensors of one optimiser step.

Axes: P prompts, G rollouts of one prompt, B rollouts in a batch, T tokens, V vocabulary, S decoding slots, D head size.
"""

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from scalerl.model.packing import Packing, packed_micro_batches, padded_micro_batches, shared_micro_batches
from scalerl.recipe import Optimiser
from scalerl.rollout import Group, Rollout


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
    prompt_B: Tensor
    """Tokens of the prompt."""
    reference_BT: Tensor | None = None
    """Log-probabilities under the frozen reference policy, if a KL penalty needs them."""
    start_BT: Tensor | None = None
    """Log-probabilities under the policy at the start of the round, if truncated importance weights need them."""

    values_BT: Tensor | None = None
    """A critic's values at the start of the round, of the state before each token."""
    returns_BT: Tensor | None = None
    """What those values should have been, 0 off the mask."""

    def to(self, device: torch.device) -> "Batch":
        """The same on `device`."""
        moved: dict[str, Any] = {}
        for field in fields(self):
            tensor = getattr(self, field.name)
            moved[field.name] = None if tensor is None else tensor.to(device)
        return Batch(**moved)

    def work(self) -> tuple[int, int]:
        """Tokens that one pass over the batch forwards, padding left out, and positions they attend to, all summed."""
        return int(self.length_B.sum()), int((self.length_B * (self.length_B + 1) // 2).sum())

    def packing(self, kind: Literal["none", "sequences", "prompts"]) -> Packing | None:
        """How its rows are laid out without padding; None if they are padded."""
        if kind == "none":
            return None
        if kind == "sequences":
            return Packing.of(self.length_B)
        return Packing.with_shared_prompts(self.length_B, self.prompt_B, self.group_B)

    def micro_batches(self, optimiser: Optimiser) -> list[Tensor]:
        """Row indices of each pass."""
        limit = optimiser.micro_batch_tokens
        if optimiser.packing == "prompts":
            return shared_micro_batches(self.length_B, self.prompt_B, self.group_B, limit)
        split = packed_micro_batches if optimiser.packing == "sequences" else padded_micro_batches
        return split(self.length_B, limit)

    def part(self, rows: Tensor) -> "Batch":
        """These rows, cut to the longest of them."""
        width = int(self.length_B[rows].max())
        return Batch(
            tokens_BT=self.tokens_BT[rows, :width],
            mask_BT=self.mask_BT[rows, :width],
            behaviour_BT=self.behaviour_BT[rows, :width],
            group_B=self.group_B[rows],
            length_B=self.length_B[rows],
            prompt_B=self.prompt_B[rows],
            reference_BT=None if self.reference_BT is None else self.reference_BT[rows, :width],
            start_BT=None if self.start_BT is None else self.start_BT[rows, :width],
            values_BT=None if self.values_BT is None else self.values_BT[rows, :width],
            returns_BT=None if self.returns_BT is None else self.returns_BT[rows, :width],
        )


def make_batch(groups: list[Group], *, mask_truncated: bool = False) -> Batch:
    """Rollouts of `groups` in order, as tensors of the host; `mask_truncated` takes truncated ones off the mask."""
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    group_of = [index for index, group in enumerate(groups) for _ in group.rollouts]
    return batch_of(rollouts, group_of, mask_truncated=mask_truncated)


def batch_of(rollouts: list[Rollout], group_of: list[int], *, mask_truncated: bool = False) -> Batch:
    """These rollouts, each with the index of its group, as tensors of the host."""
    lengths = [len(rollout.prompt.tokens) + len(rollout.tokens) for rollout in rollouts]
    shape = (len(rollouts), max(lengths))
    tokens = np.zeros(shape, dtype=np.int64)
    mask = np.zeros(shape, dtype=np.bool_)
    behaviour = np.zeros(shape, dtype=np.float32)
    for row, (rollout, length) in enumerate(zip(rollouts, lengths, strict=True)):
        start = len(rollout.prompt.tokens)
        tokens[row, :start] = rollout.prompt.tokens
        tokens[row, start:length] = rollout.tokens
        mask[row, start:length] = ~rollout.forced & (not (mask_truncated and rollout.truncated))
        behaviour[row, start:length] = np.where(rollout.forced, 0.0, rollout.logprobs)
    return Batch(
        tokens_BT=torch.from_numpy(tokens),
        mask_BT=torch.from_numpy(mask),
        behaviour_BT=torch.from_numpy(behaviour),
        group_B=torch.from_numpy(np.array(group_of, dtype=np.int64)),
        length_B=torch.from_numpy(np.array(lengths, dtype=np.int64)),
        prompt_B=torch.from_numpy(np.array([len(rollout.prompt.tokens) for rollout in rollouts], dtype=np.int64)),
    )
