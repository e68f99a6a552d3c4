"""Entropy of the policy, for the log and for an entropy bonus with its gradient (PPO, arXiv 1707.06347)."""

from torch import Tensor


def entropy(logprobs_V: Tensor) -> Tensor:
    """H = -sum_v p_v log p_v in nats over the last axis; dH / dlogit_v = -p_v (log p_v + H)."""
    return -(logprobs_V.exp() * logprobs_V).sum(-1)
