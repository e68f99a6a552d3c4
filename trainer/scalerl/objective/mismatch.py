"""Mismatch between trainer and generator, measured on the tokens that the generator chose.

    r = pi_train(y) / pi_gen(y),  y drawn from pi_gen

    KL(pi_gen || pi_train)   k1: mean of -log r       k3: mean of r - 1 - log r
    KL(pi_train || pi_gen)   k1: mean of r log r      k3: mean of r log r - (r - 1)

k1 and k3 have the same mean; only k3 is never negative (Schulman 2020, joschu.net/blog/kl-approx). Sums are float64.
"""

import math

import torch
from torch import Tensor

MAX_LOG_RATIO = 300.0
"""Cap on a log-ratio: the square of e^300 is still a float64, and the run log takes no infinity."""
FAR = math.log(2)
"""|log r| of a ratio outside [1/2, 2]."""


def effective_share(mean: float, mean_square: float) -> float:
    """(sum w)^2 / (n sum w^2) of n weights with these means: the effective sample size as a share of n (Kong 1992)."""
    return mean**2 / mean_square


def of_tokens(log_r_M: Tensor) -> dict[str, Tensor]:
    """Measures over M tokens, one number each, by column of a train row."""
    log_r_M = log_r_M.double().clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    gap_M, more_M = log_r_M.abs(), torch.expm1(log_r_M)
    weighted_M = log_r_M.exp() * log_r_M
    return {
        "mismatch_k1": -log_r_M.mean(),
        "mismatch_k3": (more_M - log_r_M).mean(),
        "mismatch_reverse_k1": weighted_M.mean(),
        "mismatch_reverse_k3": (weighted_M - more_M).mean(),
        "mismatch_p99": gap_M.kthvalue(math.ceil(0.99 * len(gap_M))).values,
        "mismatch_max": gap_M.max(),
        "mismatch_far": (gap_M > FAR).double().mean(),
    }


def of_sequences(log_r_BT: Tensor) -> dict[str, Tensor]:
    """Measures of the ratios of whole sequences, w = prod_t r_t; log r is 0 off the mask, [B, T].

    mismatch_chi_square is mean w^2 - 1, the chi-square divergence of pi_train from pi_gen.
    """
    log_w_B = log_r_BT.double().sum(dim=1).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return {
        "mismatch_chi_square": torch.expm1(2 * log_w_B).mean(),
        "ess_sequences": log_w_B.exp().mean().square() / (2 * log_w_B).exp().mean(),
    }


def by_label(values_M: Tensor, label_M: Tensor, num_labels: int) -> Tensor:
    """Mean of the values with each label, [num_labels]; every label has some."""
    zeros = values_M.new_zeros(num_labels)
    return zeros.index_add(0, label_M, values_M) / zeros.index_add(0, label_M, torch.ones_like(values_M))
