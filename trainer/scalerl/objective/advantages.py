"""Advantages: each prompt's rewards, centred on their mean and divided by a standard deviation (ScaleRL §3.2).

Prompts may have different numbers of generations; the advantage of a missing generation is 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from scalerl.objective.running_statistics import RunningStatistics
from scalerl.objective.shapes import Shaped
from scalerl.recipe import Own
from scalerl.recipe.own_function import call_own

STD_EPS = 1e-6


@dataclass(frozen=True, kw_only=True)
class Rewards(Shaped):
    """Rewards of P prompts with up to G generations each, on the host; `Rewards.of([[1, -1], [1, 0.5, -1]])` is 2x3."""

    rewards_PG: Tensor
    mask_PG: Tensor
    """True if the generation exists."""

    @classmethod
    def of(cls, rewards: Sequence[Sequence[float]]) -> Self:
        """Rewards from one list per prompt; shorter lists are padded with zeros."""
        # Float64: equal fractional rewards must centre to exactly 0, or prompt-level division amplifies rounding noise.
        count_P = np.array([len(of_prompt) for of_prompt in rewards])
        mask_PG = np.arange(max(count_P)) < count_P[:, None]
        rewards_PG = np.zeros(mask_PG.shape)
        rewards_PG[mask_PG] = [reward for of_prompt in rewards for reward in of_prompt]
        return cls(rewards_PG=torch.from_numpy(rewards_PG), mask_PG=torch.from_numpy(mask_PG))


@dataclass(frozen=True, kw_only=True)
class AdvantageOutputs(Shaped):
    """The advantage of every generation; that of a missing one is 0."""

    advantage_PG: Tensor


def centred(given: Rewards) -> Tensor:
    """A_i = r_i - mean_j r_j over the generations of one prompt, [P, G]."""
    rewards_PG, mask_PG = given.rewards_PG, given.mask_PG
    mean_P1 = torch.where(mask_PG, rewards_PG, 0.0).sum(dim=1, keepdim=True) / mask_PG.sum(dim=1, keepdim=True)
    return torch.where(mask_PG, rewards_PG - mean_P1, 0.0)


def normalise_none(given: Rewards) -> AdvantageOutputs:
    """A_i unchanged (Dr. GRPO, arXiv 2503.20783)."""
    return AdvantageOutputs(advantage_PG=centred(given))


def leave_one_out(given: Rewards) -> AdvantageOutputs:
    """r_i - mean_(j != i) r_j = n / (n - 1) A_i, with n rewards of the prompt (RLOO, arXiv 2402.14740)."""
    num_P1 = given.mask_PG.sum(dim=1, keepdim=True)
    return AdvantageOutputs(advantage_PG=centred(given) * num_P1 / (num_P1 - 1).clamp(min=1))


def normalise_prompt(given: Rewards) -> AdvantageOutputs:
    """A_i / (std_j r_j + eps) with the population std of the prompt's own rewards (GRPO, arXiv 2402.03300)."""
    advantages_PG, num_P1 = centred(given), given.mask_PG.sum(dim=1, keepdim=True)
    std_P1 = (advantages_PG.square().sum(dim=1, keepdim=True) / num_P1).sqrt()
    return AdvantageOutputs(advantage_PG=advantages_PG / (std_P1 + STD_EPS))


def normalise_batch(given: Rewards) -> AdvantageOutputs:
    """A_i / (std A + eps) with the population std of all given advantages (ScaleRL §3.2).

    Pass only prompts that survive the zero-variance filter: the others would shrink the std.
    """
    advantages_PG = centred(given)
    std = advantages_PG[given.mask_PG].std(correction=0)
    return AdvantageOutputs(advantage_PG=advantages_PG / (std + STD_EPS))


def normalise_running(given: Rewards, so_far: RunningStatistics) -> tuple[Tensor, RunningStatistics]:
    """A_i / (std + eps) with the population std of all advantages so far, and the updated statistics."""
    advantages_PG = centred(given)
    statistics = so_far.including(advantages_PG[given.mask_PG])
    return advantages_PG / (statistics.std + STD_EPS), statistics


ADVANTAGES = {
    "batch": normalise_batch,
    "prompt": normalise_prompt,
    "none": normalise_none,
    "leave_one_out": leave_one_out,
}


def advantages(given: Rewards, normalisation: str | Own, so_far: RunningStatistics) -> tuple[Tensor, RunningStatistics]:
    """Advantages [P, G] of the prompts that stay in the loss, and the running statistics, updated only if the
    normalisation uses them."""
    if normalisation == "running":
        return normalise_running(given, so_far)
    found = call_own(normalisation, given) if isinstance(normalisation, Own) else ADVANTAGES[normalisation](given)
    return found.advantage_PG, so_far
