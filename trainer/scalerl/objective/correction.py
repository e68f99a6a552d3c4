"""Corrections of the gap between trainer and generator: one factor per token, which multiplies the loss.

    r_t = pi(y_t) / pi_gen(y_t),  with pi the trained policy or that of the start of the round

    token      r_t
    sequence   prod_t r_t            over the policy's own tokens of the sequence
    geometric  (prod_t r_t)^(1 / |y|)

No factor has a gradient.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from scalerl.objective.shapes import Shaped
from scalerl.recipe import RatioMask, Truncate, TrustRegion

MAX_LOG_WEIGHT = 80.0
"""Cap on the log of a ratio: e^80 is still a float32, and the product of a long sequence need not be."""


@dataclass(frozen=True, kw_only=True)
class Factors(Shaped):
    """The factor of each token's loss, and the tokens on which a bound is active, by side."""

    factor_BT: Tensor
    below_BT: Tensor
    above_BT: Tensor


def log_ratio(logprobs_BT: Tensor, behaviour_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """log r on the mask and 0 elsewhere, [B, T]."""
    zero = logprobs_BT.new_zeros(())
    return torch.where(mask_BT, logprobs_BT, zero) - torch.where(mask_BT, behaviour_BT, zero)


def mean_log_ratio(log_r_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Mean of log r over the own tokens of each sequence, [B, 1]; 0 for a sequence without any."""
    return log_r_BT.sum(dim=1, keepdim=True) / mask_BT.sum(dim=1, keepdim=True).clamp(min=1)


def ratio_of(of: str, log_r_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """The ratio of each token, of its sequence, or the geometric mean of its sequence, [B, T]."""
    if of == "sequence":
        log_r_BT = log_r_BT.sum(dim=1, keepdim=True).expand_as(log_r_BT)
    elif of == "geometric":
        log_r_BT = mean_log_ratio(log_r_BT, mask_BT).expand_as(log_r_BT)
    return log_r_BT.clamp(-MAX_LOG_WEIGHT, MAX_LOG_WEIGHT).exp()


def truncated(settings: Truncate, log_r_BT: Tensor, mask_BT: Tensor) -> Factors:
    """min(max(r, low), high)."""
    ratio_BT = ratio_of(settings.of, log_r_BT, mask_BT)
    return Factors(
        factor_BT=ratio_BT.clamp(settings.low, settings.high),
        below_BT=mask_BT & (ratio_BT < settings.low),
        above_BT=mask_BT & (ratio_BT > settings.high),
    )


def masked(settings: RatioMask, log_r_BT: Tensor, mask_BT: Tensor) -> Factors:
    """0 outside [low, high]; inside 1, or r if the loss takes its ratio from the start of the round."""
    ratio_BT = ratio_of(settings.of, log_r_BT, mask_BT)
    below_BT = ratio_BT < settings.low
    above_BT = torch.zeros_like(mask_BT) if settings.high is None else ratio_BT > settings.high
    kept_BT = torch.ones_like(ratio_BT) if settings.policy == "train" else ratio_BT
    return Factors(
        factor_BT=torch.where(below_BT | above_BT, 0.0, kept_BT),
        below_BT=mask_BT & below_BT,
        above_BT=mask_BT & above_BT,
    )


def total_variation(train_BT: Tensor, gen_BT: Tensor) -> Tensor:
    """|p - q| of the outcomes this token and another, from log p and log q, [B, T]."""
    return (train_BT.exp() - gen_BT.exp()).abs()


def two_outcome_kl(train_BT: Tensor, gen_BT: Tensor) -> Tensor:
    """q log(q / p) + (1 - q) log((1 - q) / (1 - p)), from log p and log q, [B, T]; infinite for p = 1 > q."""
    others_train_BT, others_gen_BT = (torch.log(-torch.expm1(one_BT)) for one_BT in (train_BT, gen_BT))
    others_BT = torch.where(gen_BT < 0, gen_BT.expm1().neg() * (others_gen_BT - others_train_BT), 0.0)
    return gen_BT.exp() * (gen_BT - train_BT) + others_BT


DISTANCES = {"tv": total_variation, "kl": two_outcome_kl}


def in_trust_region(
    settings: TrustRegion, train_BT: Tensor, gen_BT: Tensor, advantage_BT: Tensor, mask_BT: Tensor
) -> Factors:
    """0 if A > 0, p > q and D > high, or A < 0, p < q and D > low; otherwise 1 (arXiv 2602.04879)."""
    zero = train_BT.new_zeros(())
    train_BT, gen_BT = torch.where(mask_BT, train_BT, zero), torch.where(mask_BT, gen_BT, zero)
    distance_BT = DISTANCES[settings.of](train_BT, gen_BT)
    below_BT = mask_BT & (advantage_BT < 0) & (train_BT < gen_BT) & (distance_BT > settings.low)
    above_BT = mask_BT & (advantage_BT > 0) & (train_BT > gen_BT) & (distance_BT > settings.high)
    return Factors(
        factor_BT=torch.where(below_BT | above_BT, 0.0, torch.ones_like(train_BT)), below_BT=below_BT, above_BT=above_BT
    )
