"""Groups of rollouts as the tensors of one optimiser step.

Axes: P prompts, G rollouts of one prompt, B rollouts in a batch, T tokens, V vocabulary, S decoding slots, D head size.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from scalerl.model.packing import Packing, packed_micro_batches, padded_micro_batches, shared_micro_batches
from scalerl.recipe.scale import Layout
from scalerl.rollout import Group, Rollout

ON_THE_HOST = frozenset({"host_mask_BT", "group_B", "length_B", "prompt_B", "version_BT", "tasks"})
"""Batch fields that stay on the host: they determine the log, or the layout of a pass, so that its shape is known
without waiting for the device."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Rollouts as right-padded tensors, with prompt and answer in one row."""

    tokens_BT: Tensor
    mask_BT: Tensor
    """True for tokens chosen by the policy, not for prompt, forced or padding tokens, or what an environment said."""
    behaviour_BT: Tensor
    """Behaviour log-probabilities, 0 off the mask."""
    host_mask_BT: Tensor
    """Copy of the mask on the host."""
    group_B: Tensor
    """Index of the prompt's group; on the host."""
    length_B: Tensor
    """Number of prompt and answer tokens; on the host."""
    prompt_B: Tensor
    """Number of prompt tokens; on the host."""
    version_BT: Tensor | None = None
    """Weight version that chose each token; on the host, and used only for the log."""
    tasks: tuple[str, ...] = ()
    """Name of each group's task, used only for the log."""
    reference_BT: Tensor | None = None
    """Log-probabilities under the frozen reference policy, if a KL penalty is used."""
    start_BT: Tensor | None = None
    """Log-probabilities under the policy at the start of the round, if truncated importance weights are used."""

    values_BT: Tensor | None = None
    """Critic's value of the state before each token, from the start of the round."""
    returns_BT: Tensor | None = None
    """Targets of those values, 0 off the mask."""

    def to(self, device: torch.device) -> "Batch":
        """This batch on `device`, except for the fields that stay on the host."""
        tensors = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ON_THE_HOST}
        there = {name: one.to(device, non_blocking=True) for name, one in tensors.items() if one is not None}
        return replace(self, **there)

    @property
    def num_own(self) -> int:
        """Number of tokens chosen by the policy."""
        return int(self.host_mask_BT.sum())

    def own(self, values_BT: Tensor) -> Tensor:
        """Values at tokens chosen by the policy, row after row, [M]."""
        return values_BT.flatten().index_select(0, self._own_places)

    @cached_property
    def _own_places(self) -> Tensor:
        """Indices of the policy's tokens in the flattened [B, T]. A boolean index would make the host wait."""
        return self.host_mask_BT.flatten().nonzero().flatten().to(self.mask_BT.device, non_blocking=True)

    def work(self) -> tuple[int, int]:
        """Total tokens that one pass forwards, without padding, and total positions they attend to."""
        return int(self.length_B.sum()), int((self.length_B * (self.length_B + 1) // 2).sum())

    def packing(self, kind: Layout) -> Packing | None:
        """Layout of the rows without padding; None if they are padded."""
        if kind == "none":
            return None
        if kind == "sequences":
            packing = Packing.of(self.length_B)
        else:
            packing = Packing.with_shared_prompts(self.length_B, self.prompt_B, self.group_B)
        return packing.to(self.tokens_BT.device)

    def micro_batches(self, kind: Layout, limit: int) -> list[Tensor]:
        """Row indices of each pass of at most `limit` tokens, on the host."""
        if kind == "prompts":
            return shared_micro_batches(self.length_B, self.prompt_B, self.group_B, limit)
        split = packed_micro_batches if kind == "sequences" else padded_micro_batches
        return split(self.length_B, limit)

    def part(self, rows: Tensor) -> "Batch":
        """Batch of these rows (indices on the host), truncated to the longest of them."""
        width = int(self.length_B[rows].max())
        there, cut = rows.to(self.tokens_BT.device, non_blocking=True), {}
        for field in fields(self):
            tensor = getattr(self, field.name)
            if isinstance(tensor, Tensor):
                own = rows if field.name in ON_THE_HOST else there
                cut[field.name] = tensor[own, :width] if tensor.dim() == 2 else tensor[own]
        return replace(self, **cut)


def make_batch(groups: list[Group], *, mask_truncated: bool = False) -> Batch:
    """Rollouts of `groups` in order, as tensors on the host; `mask_truncated` masks truncated ones out."""
    rollouts = [sample for group in groups for rollout in group.rollouts for sample in rollout.samples]
    group_of = [index for index, group in enumerate(groups) for one in group.rollouts for _ in one.samples]
    batch = batch_of(rollouts, group_of, mask_truncated=mask_truncated)
    return replace(batch, tasks=tuple(group.prompt.task for group in groups))


def batch_of(rollouts: list[Rollout], group_of: list[int], *, mask_truncated: bool = False) -> Batch:
    """Rollouts with the index of each one's group, as tensors on the host."""
    lengths = [len(rollout.prompt.tokens) + len(rollout.tokens) for rollout in rollouts]
    shape = (len(rollouts), max(lengths))
    tokens = np.zeros(shape, dtype=np.int64)
    mask = np.zeros(shape, dtype=np.bool_)
    behaviour = np.zeros(shape, dtype=np.float32)
    versions = np.zeros(shape, dtype=np.int64)
    prompt_B = np.array([len(rollout.prompt.tokens) for rollout in rollouts])
    column_T, length_B = np.arange(shape[1]), np.array(lengths)
    is_prompt, is_valid = column_T < prompt_B[:, None], column_T < length_B[:, None]
    answers = is_valid & ~is_prompt
    tokens[is_prompt] = [token for rollout in rollouts for token in rollout.prompt.tokens]
    tokens[answers] = np.concatenate([rollout.tokens for rollout in rollouts])
    chosen = ~np.concatenate([rollout.forced for rollout in rollouts])
    if any(rollout.episode for rollout in rollouts):
        chosen &= np.concatenate([rollout.written for rollout in rollouts])
    mask[answers] = chosen
    if mask_truncated:
        mask[[rollout.truncated for rollout in rollouts]] = False
    behaviour[answers] = np.where(chosen, np.concatenate([rollout.logprobs for rollout in rollouts]), 0.0)
    versions[answers] = np.concatenate([rollout.versions for rollout in rollouts])
    return Batch(
        tokens_BT=torch.from_numpy(tokens),
        mask_BT=torch.from_numpy(mask),
        host_mask_BT=torch.from_numpy(mask),
        behaviour_BT=torch.from_numpy(behaviour),
        group_B=torch.from_numpy(np.array(group_of, dtype=np.int64)),
        length_B=torch.from_numpy(length_B),
        prompt_B=torch.from_numpy(prompt_B),
        version_BT=torch.from_numpy(versions),
    )
