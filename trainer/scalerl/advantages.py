"""Advantages: rewards of a prompt's generations, centred on their mean, over a standard deviation (ScaleRL §3.2)."""

from torch import Tensor

from scalerl.running_statistics import RunningStatistics

EPS = 1e-6


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


def normalise_running(rewards_PG: Tensor, so_far: RunningStatistics) -> tuple[Tensor, RunningStatistics]:
    """A_i / (std + eps) with the population std of all advantages up to and including these, and their statistics."""
    advantages_PG = centred(rewards_PG)
    statistics = so_far.including(advantages_PG)
    return advantages_PG / (statistics.std + EPS), statistics


ADVANTAGES = {"batch": normalise_batch, "prompt": normalise_prompt, "none": normalise_none}


def advantages(rewards_PG: Tensor, normalisation: str, so_far: RunningStatistics) -> tuple[Tensor, RunningStatistics]:
    """Advantages [P, G] of prompts that stay in the loss, and the statistics of all up to them where these are kept."""
    if normalisation == "running":
        return normalise_running(rewards_PG, so_far)
    return ADVANTAGES[normalisation](rewards_PG), so_far
