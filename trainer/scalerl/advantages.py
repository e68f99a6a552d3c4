"""Advantages: rewards of a prompt's generations, centred on their mean, over a standard deviation (ScaleRL §3.2)."""

import torch
from torch import Tensor

EPS = 1e-6


def zero_variance(rewards_PG: Tensor) -> Tensor:
    """True for prompts [P] whose generations all got the same reward."""
    return (rewards_PG == rewards_PG[:, :1]).all(dim=1)


def centred(rewards_PG: Tensor) -> Tensor:
    """A_i = r_i - mean_j r_j over the generations of one prompt, [P, G]."""
    return rewards_PG - rewards_PG.mean(dim=1, keepdim=True)


def normalise_none(rewards_PG: Tensor) -> Tensor:
    """A_i as it is (Dr. GRPO, arXiv 2503.20783)."""
    return centred(rewards_PG)


def normalise_prompt(rewards_PG: Tensor) -> Tensor:
    """A_i / (std_j r_j + eps) with the population std of the prompt's own rewards (GRPO, arXiv 2402.03300)."""
    return centred(rewards_PG) / (rewards_PG.std(dim=1, correction=0, keepdim=True) + EPS)


def normalise_batch(rewards_PG: Tensor) -> Tensor:
    """A_i / (std A + eps) with the population std of all advantages given (ScaleRL §3.2).

    Give it the survivors of the zero-variance filter only: prompts without variance would shrink the std.
    """
    advantages_PG = centred(rewards_PG)
    return advantages_PG / (advantages_PG.std(correction=0) + EPS)


ADVANTAGES = {"batch": normalise_batch, "prompt": normalise_prompt, "none": normalise_none}


def advantages(rewards_PG: Tensor, normalisation: str, *, drop_zero_variance: bool) -> tuple[Tensor, Tensor]:
    """Advantages [P, G], 0 for dropped prompts, and which prompts [P] stay in the loss."""
    survives_P = ~zero_variance(rewards_PG) if drop_zero_variance else torch.ones(len(rewards_PG), dtype=torch.bool)
    result_PG = torch.zeros_like(rewards_PG)
    if survives_P.any():
        result_PG[survives_P] = ADVANTAGES[normalisation](rewards_PG[survives_P])
    return result_PG, survives_P
