"""Policy losses to be minimised, one value per token; `aggregation` reduces them to one number.

Every function takes the trainer's log-probabilities, the generator's, the advantages and the mask of the policy's own
tokens, and returns the loss and a mask of clipped ratios, both [B, T]. Advantages are [B, T], or [B, 1] if all tokens
of a rollout share one. Off the mask, loss and clip are 0 and carry no gradient for any input: `token_loss` masks values
before they are multiplied, because 0 x NaN is NaN.

    rho_t = pi_train(y_t) / pi_gen(y_t)
"""

from collections.abc import Callable

import torch
from torch import Tensor

from scalerl.recipe import Cispo, Dapo, Grpo, Gspo

TokenLoss = tuple[Tensor, Tensor]


def log_ratio(logprobs_BT: Tensor, behaviour_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """log rho on the mask and 0 elsewhere, [B, T]."""
    zero = logprobs_BT.new_zeros(())
    return torch.where(mask_BT, logprobs_BT, zero) - torch.where(mask_BT, behaviour_BT, zero)


def effective_share(mean: float, mean_square: float) -> float:
    """(sum w)^2 / (n sum w^2) of n weights with these means: the effective sample size as a share of n (Kong 1992)."""
    return mean**2 / mean_square


def clipped_surrogate(ratio_BT: Tensor, advantage_BT: Tensor, low: float, high: float) -> TokenLoss:
    """-min(rho A, clip(rho, 1 - low, 1 + high) A), and a mask of the clip deciding (PPO, arXiv 1707.06347)."""
    free = ratio_BT * advantage_BT
    clipped = ratio_BT.clamp(1 - low, 1 + high) * advantage_BT
    return -torch.minimum(free, clipped), clipped < free


def cispo(
    logprobs_BT: Tensor, behaviour_BT: Tensor, advantage_BT: Tensor, mask_BT: Tensor, min_ratio: float, max_ratio: float
) -> TokenLoss:
    """-stop_gradient(clip(rho, min_ratio, max_ratio)) A log pi_train (arXiv 2506.13585)."""
    ratio = log_ratio(logprobs_BT, behaviour_BT, mask_BT).detach().exp()
    weight = ratio.clamp(min_ratio, max_ratio)
    logprobs = torch.where(mask_BT, logprobs_BT, logprobs_BT.new_zeros(()))
    return -weight * advantage_BT * logprobs, mask_BT & (weight != ratio)


def dapo(
    logprobs_BT: Tensor, behaviour_BT: Tensor, advantage_BT: Tensor, mask_BT: Tensor, clip_low: float, clip_high: float
) -> TokenLoss:
    """The clipped surrogate with separate lower and upper bounds (arXiv 2503.14476)."""
    ratio = log_ratio(logprobs_BT, behaviour_BT, mask_BT).exp()
    loss, clipped = clipped_surrogate(ratio, advantage_BT, clip_low, clip_high)
    return loss * mask_BT, clipped & mask_BT


def grpo(logprobs_BT: Tensor, behaviour_BT: Tensor, advantage_BT: Tensor, mask_BT: Tensor, clip: float) -> TokenLoss:
    """The clipped surrogate with the same bound on both sides (arXiv 2402.03300)."""
    return dapo(logprobs_BT, behaviour_BT, advantage_BT, mask_BT, clip, clip)


def sequence_ratio(logprobs_BT: Tensor, behaviour_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """s = (prod_t rho_t)^(1 / |y|), [B, 1], over the policy's own tokens (arXiv 2507.18071)."""
    num_tokens_B1 = mask_BT.sum(dim=1, keepdim=True).clamp(min=1)
    return (log_ratio(logprobs_BT, behaviour_BT, mask_BT).sum(dim=1, keepdim=True) / num_tokens_B1).exp()


def gspo(
    logprobs_BT: Tensor, behaviour_BT: Tensor, advantage_BT: Tensor, mask_BT: Tensor, clip_low: float, clip_high: float
) -> TokenLoss:
    """The clipped surrogate on s, one ratio for all tokens of a sequence (arXiv 2507.18071)."""
    ratio = sequence_ratio(logprobs_BT, behaviour_BT, mask_BT).expand_as(mask_BT)
    loss, clipped = clipped_surrogate(ratio, advantage_BT, clip_low, clip_high)
    return loss * mask_BT, clipped & mask_BT


def token_weight(start_BT: Tensor, behaviour_BT: Tensor, mask_BT: Tensor, max_weight: float) -> Tensor:
    """stop_gradient(min(pi_start / pi_gen, max_weight)) of each token, 1 off the mask, [B, T]."""
    return log_ratio(start_BT, behaviour_BT, mask_BT).detach().exp().clamp(max=max_weight)


def sequence_weight(start_BT: Tensor, behaviour_BT: Tensor, mask_BT: Tensor, max_weight: float) -> Tensor:
    """stop_gradient(min((prod_t pi_start / pi_gen)^(1 / |y|), max_weight)), one for all tokens, [B, 1]."""
    return sequence_ratio(start_BT, behaviour_BT, mask_BT).detach().clamp(max=max_weight)


LOSSES: dict[str, Callable[..., TokenLoss]] = {"cispo": cispo, "dapo": dapo, "grpo": grpo, "gspo": gspo}

WEIGHTS = {"dapo": token_weight, "grpo": token_weight, "gspo": sequence_weight}


def token_loss(
    settings: Cispo | Dapo | Grpo | Gspo,
    logprobs_BT: Tensor,
    behaviour_BT: Tensor,
    advantage_BT: Tensor,
    mask_BT: Tensor,
    start_BT: Tensor | None = None,
) -> TokenLoss:
    """The per-token loss selected by `settings`, with its parameters.

    With a `max_weight` the ratio is pi_train / pi_start, and the loss is multiplied by the truncated weight
    pi_start / pi_gen. The clip of the ratio then bounds the trainer's own change, not its mismatch with the generator
    (decoupled PPO, arXiv 2505.24298; truncated importance sampling, Yao et al. 2025).
    """
    parameters = settings.model_dump(exclude={"type", "max_weight"})
    loss = LOSSES[settings.type]
    advantage_BT = torch.where(mask_BT, advantage_BT, advantage_BT.new_zeros(()))
    if settings.type == "cispo" or settings.max_weight is None:
        return loss(logprobs_BT, behaviour_BT, advantage_BT, mask_BT, **parameters)
    assert start_BT is not None, "max_weight needs the log-probabilities of the start of the round"
    weight = WEIGHTS[settings.type](start_BT, behaviour_BT, mask_BT, settings.max_weight)
    loss_BT, clipped_BT = loss(logprobs_BT, start_BT, advantage_BT, mask_BT, **parameters)
    return weight * loss_BT, clipped_BT
