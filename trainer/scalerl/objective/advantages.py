"""Advantages: rewards of a prompt's generations, centred on their mean, over a standard deviation (ScaleRL §3.2).

Prompts may have different numbers of generations: `mask_PG` is true for those that exist, and results are 0 for the
others. Without a mask all of them exist.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from scalerl.objective.running_statistics import RunningStatistics

STD_EPS = 1e-6
"""Added to a standard deviation that divides."""


def padded(rewards: Sequence[Sequence[float]]) -> tuple[Tensor, Tensor]:
    """Rewards of each prompt as rewards_PG, padded with zeros, and mask_PG, both on the host."""
    # Float64: equal fractional rewards must stay exactly centred, or prompt-level division would amplify the noise.
    rewards_PG = torch.zeros(len(rewards), max(map(len, rewards)), dtype=torch.float64, device="cpu")
    mask_PG = torch.zeros_like(rewards_PG, dtype=torch.bool)
    for row, of_prompt in enumerate(rewards):
        rewards_PG[row, : len(of_prompt)] = torch.tensor(of_prompt, dtype=torch.float64, device="cpu")
        mask_PG[row, : len(of_prompt)] = True
    return rewards_PG, mask_PG


def centred(rewards_PG: Tensor, mask_PG: Tensor | None = None) -> Tensor:
    """A_i = r_i - mean_j r_j over the generations of one prompt, [P, G]."""
    if mask_PG is None:
        return rewards_PG - rewards_PG.mean(dim=1, keepdim=True)
    mean_P1 = torch.where(mask_PG, rewards_PG, 0.0).sum(dim=1, keepdim=True) / mask_PG.sum(dim=1, keepdim=True)
    return torch.where(mask_PG, rewards_PG - mean_P1, 0.0)


def normalise_none(rewards_PG: Tensor, mask_PG: Tensor | None = None) -> Tensor:
    """A_i unchanged (Dr. GRPO, arXiv 2503.20783)."""
    return centred(rewards_PG, mask_PG)


def normalise_prompt(rewards_PG: Tensor, mask_PG: Tensor | None = None) -> Tensor:
    """A_i / (std_j r_j + eps) with the population std of the prompt's own rewards (GRPO, arXiv 2402.03300)."""
    advantages_PG = centred(rewards_PG, mask_PG)
    num_P1 = rewards_PG.shape[1] if mask_PG is None else mask_PG.sum(dim=1, keepdim=True)
    return advantages_PG / ((advantages_PG.square().sum(dim=1, keepdim=True) / num_P1).sqrt() + STD_EPS)


def normalise_batch(rewards_PG: Tensor, mask_PG: Tensor | None = None) -> Tensor:
    """A_i / (std A + eps) with the population std of all advantages given (ScaleRL §3.2).

    Pass only prompts that survive the zero-variance filter: the others would shrink the std.
    """
    advantages_PG = centred(rewards_PG, mask_PG)
    return advantages_PG / (present(advantages_PG, mask_PG).std(correction=0) + STD_EPS)


def normalise_running(
    rewards_PG: Tensor, so_far: RunningStatistics, mask_PG: Tensor | None = None
) -> tuple[Tensor, RunningStatistics]:
    """A_i / (std + eps) with the population std of all advantages up to and including these, and their statistics."""
    advantages_PG = centred(rewards_PG, mask_PG)
    statistics = so_far.including(present(advantages_PG, mask_PG))
    return advantages_PG / (statistics.std + STD_EPS), statistics


def present(values_PG: Tensor, mask_PG: Tensor | None) -> Tensor:
    """Values of generations that exist, row after row, [B]."""
    return values_PG.flatten() if mask_PG is None else values_PG[mask_PG]


ADVANTAGES = {"batch": normalise_batch, "prompt": normalise_prompt, "none": normalise_none}


def advantages(
    rewards_PG: Tensor, normalisation: str, so_far: RunningStatistics, mask_PG: Tensor | None = None
) -> tuple[Tensor, RunningStatistics]:
    """Advantages [P, G] of prompts that stay in the loss, and the running statistics, unchanged if they are not
    used."""
    if normalisation == "running":
        return normalise_running(rewards_PG, so_far, mask_PG)
    return ADVANTAGES[normalisation](rewards_PG, mask_PG), so_far
