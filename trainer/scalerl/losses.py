"""Policy losses, one value a token, to be minimised; how they become one number is in `aggregation`.

Every function takes the trainer's log-probs, the generator's, the advantages and the mask of the policy's own tokens,
and returns the loss and whether the ratio was clipped, both [B, T]. Off the mask both are 0 and carry no gradient,
whatever stood there: values are masked before they are multiplied, because 0 x NaN is NaN.

    rho_t = pi_train(y_t) / pi_gen(y_t)
"""

from collections.abc import Callable

import torch
from torch import Tensor

from scalerl.recipe import Cispo, Dapo, Grpo, Gspo

TokenLoss = tuple[Tensor, Tensor]


def log_ratio(logprobs_BT: Tensor, behaviour_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """log rho on the mask and 0 elsewhere, [B, T]."""
    zero = torch.zeros((), dtype=logprobs_BT.dtype)
    return torch.where(mask_BT, logprobs_BT, zero) - torch.where(mask_BT, behaviour_BT, zero)


def clipped_surrogate(ratio_BT: Tensor, advantage_B: Tensor, low: float, high: float) -> TokenLoss:
    """-min(rho A, clip(rho, 1 - low, 1 + high) A) and where the clip decided (PPO, arXiv 1707.06347)."""
    advantage_B1 = advantage_B.unsqueeze(1)
    free = ratio_BT * advantage_B1
    clipped = ratio_BT.clamp(1 - low, 1 + high) * advantage_B1
    return -torch.minimum(free, clipped), clipped < free


def cispo(
    logprobs_BT: Tensor, behaviour_BT: Tensor, advantage_B: Tensor, mask_BT: Tensor, min_ratio: float, max_ratio: float
) -> TokenLoss:
    """-stop_gradient(clip(rho, min_ratio, max_ratio)) A log pi_train (arXiv 2506.13585)."""
    ratio = log_ratio(logprobs_BT, behaviour_BT, mask_BT).detach().exp()
    weight = ratio.clamp(min_ratio, max_ratio)
    logprobs = torch.where(mask_BT, logprobs_BT, torch.zeros((), dtype=logprobs_BT.dtype))
    return -weight * advantage_B.unsqueeze(1) * logprobs, mask_BT & (weight != ratio)


def dapo(
    logprobs_BT: Tensor, behaviour_BT: Tensor, advantage_B: Tensor, mask_BT: Tensor, clip_low: float, clip_high: float
) -> TokenLoss:
    """The clipped surrogate with its own bound on either side (arXiv 2503.14476)."""
    ratio = log_ratio(logprobs_BT, behaviour_BT, mask_BT).exp()
    loss, clipped = clipped_surrogate(ratio, advantage_B, clip_low, clip_high)
    return loss * mask_BT, clipped & mask_BT


def grpo(logprobs_BT: Tensor, behaviour_BT: Tensor, advantage_B: Tensor, mask_BT: Tensor, clip: float) -> TokenLoss:
    """The clipped surrogate with one bound for both sides (arXiv 2402.03300)."""
    return dapo(logprobs_BT, behaviour_BT, advantage_B, mask_BT, clip, clip)


def gspo(
    logprobs_BT: Tensor, behaviour_BT: Tensor, advantage_B: Tensor, mask_BT: Tensor, clip_low: float, clip_high: float
) -> TokenLoss:
    """The clipped surrogate on s = (prod_t rho_t)^(1 / |y|), one ratio for all tokens (arXiv 2507.18071)."""
    num_tokens_B1 = mask_BT.sum(dim=1, keepdim=True).clamp(min=1)
    mean_B1 = log_ratio(logprobs_BT, behaviour_BT, mask_BT).sum(dim=1, keepdim=True) / num_tokens_B1
    loss, clipped = clipped_surrogate(mean_B1.exp().expand_as(mask_BT), advantage_B, clip_low, clip_high)
    return loss * mask_BT, clipped & mask_BT


LOSSES: dict[str, Callable[..., TokenLoss]] = {"cispo": cispo, "dapo": dapo, "grpo": grpo, "gspo": gspo}


def token_loss(
    settings: Cispo | Dapo | Grpo | Gspo,
    logprobs_BT: Tensor,
    behaviour_BT: Tensor,
    advantage_B: Tensor,
    mask_BT: Tensor,
) -> TokenLoss:
    """The per-token loss that `settings` name, with their own parameters."""
    parameters = settings.model_dump(exclude={"type"})
    return LOSSES[settings.type](logprobs_BT, behaviour_BT, advantage_B, mask_BT, **parameters)
