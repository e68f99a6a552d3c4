"""Policy losses to minimise, one value per token; `aggregation` reduces them to one number.

Every loss is a function from `LossInputs` and its own parameters to `LossOutputs`. Off the mask, loss and clip are 0
and carry no gradient, whatever the inputs hold: values are masked before they are multiplied, because 0 x NaN is NaN.

    rho_t = pi_train(y_t) / pi_gen(y_t)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from scalerl.objective.shapes import Shaped
from scalerl.recipe import Cispo, Loss, OwnLoss
from scalerl.recipe.own_function import call_own


@dataclass(frozen=True, kw_only=True)
class LossInputs(Shaped):
    """Inputs of a policy loss, for B rollouts of T tokens."""

    logprobs_BT: Tensor
    """log pi_train; receives the gradient."""
    behaviour_BT: Tensor
    """log pi_gen, from the weights that chose the tokens."""
    advantage_BT: Tensor
    """Advantage of each token; one number per rollout may be expanded. Values off the mask are arbitrary until
    `token_loss` sets them to 0."""
    mask_BT: Tensor
    """True if the policy chose the token itself."""
    start_BT: Tensor | None = None
    """log pi_start, from the weights at the start of the round; None unless the recipe needs it."""


@dataclass(frozen=True, kw_only=True)
class LossOutputs(Shaped):
    """The loss of every token, and True for each token whose clip is active."""

    loss_BT: Tensor
    clipped_BT: Tensor


def log_ratio(logprobs_BT: Tensor, behaviour_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """log rho on the mask and 0 elsewhere, [B, T]."""
    zero = logprobs_BT.new_zeros(())
    return torch.where(mask_BT, logprobs_BT, zero) - torch.where(mask_BT, behaviour_BT, zero)


def effective_share(mean: float, mean_square: float) -> float:
    """(sum w)^2 / (n sum w^2) of n weights with these means: the effective sample size as a share of n (Kong 1992)."""
    return mean**2 / mean_square


def clipped_surrogate(
    ratio_BT: Tensor, advantage_BT: Tensor, mask_BT: Tensor, *, low: float, high: float
) -> LossOutputs:
    """-min(rho A, clip(rho, 1 - low, 1 + high) A), and True if the clip is active (PPO, arXiv 1707.06347)."""
    free = ratio_BT * advantage_BT
    clipped = ratio_BT.clamp(1 - low, 1 + high) * advantage_BT
    return LossOutputs(loss_BT=-torch.minimum(free, clipped) * mask_BT, clipped_BT=(clipped < free) & mask_BT)


def cispo(given: LossInputs, *, min_ratio: float, max_ratio: float) -> LossOutputs:
    """-stop_gradient(clip(rho, min_ratio, max_ratio)) A log pi_train (arXiv 2506.13585)."""
    ratio = log_ratio(given.logprobs_BT, given.behaviour_BT, given.mask_BT).detach().exp()
    weight = ratio.clamp(min_ratio, max_ratio)
    logprobs = torch.where(given.mask_BT, given.logprobs_BT, given.logprobs_BT.new_zeros(()))
    return LossOutputs(loss_BT=-weight * given.advantage_BT * logprobs, clipped_BT=given.mask_BT & (weight != ratio))


def dapo(given: LossInputs, *, clip_low: float, clip_high: float) -> LossOutputs:
    """The clipped surrogate with separate lower and upper bounds (arXiv 2503.14476)."""
    ratio = log_ratio(given.logprobs_BT, given.behaviour_BT, given.mask_BT).exp()
    return clipped_surrogate(ratio, given.advantage_BT, given.mask_BT, low=clip_low, high=clip_high)


def grpo(given: LossInputs, *, clip: float) -> LossOutputs:
    """The clipped surrogate with the same bound on both sides (arXiv 2402.03300)."""
    return dapo(given, clip_low=clip, clip_high=clip)


def sequence_ratio(logprobs_BT: Tensor, behaviour_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """s = (prod_t rho_t)^(1 / |y|), [B, 1], over the policy's own tokens (arXiv 2507.18071)."""
    num_tokens_B1 = mask_BT.sum(dim=1, keepdim=True).clamp(min=1)
    return (log_ratio(logprobs_BT, behaviour_BT, mask_BT).sum(dim=1, keepdim=True) / num_tokens_B1).exp()


def gspo(given: LossInputs, *, clip_low: float, clip_high: float) -> LossOutputs:
    """The clipped surrogate on s, one ratio for all tokens of a sequence (arXiv 2507.18071)."""
    ratio = sequence_ratio(given.logprobs_BT, given.behaviour_BT, given.mask_BT).expand_as(given.mask_BT)
    return clipped_surrogate(ratio, given.advantage_BT, given.mask_BT, low=clip_low, high=clip_high)


def token_weight(start_BT: Tensor, behaviour_BT: Tensor, mask_BT: Tensor, max_weight: float) -> Tensor:
    """stop_gradient(min(pi_start / pi_gen, max_weight)) of each token, 1 off the mask, [B, T]."""
    return log_ratio(start_BT, behaviour_BT, mask_BT).detach().exp().clamp(max=max_weight)


def sequence_weight(start_BT: Tensor, behaviour_BT: Tensor, mask_BT: Tensor, max_weight: float) -> Tensor:
    """stop_gradient(min((prod_t pi_start / pi_gen)^(1 / |y|), max_weight)), one for all tokens, [B, 1]."""
    return sequence_ratio(start_BT, behaviour_BT, mask_BT).detach().clamp(max=max_weight)


LOSSES: dict[str, Callable[..., LossOutputs]] = {"cispo": cispo, "dapo": dapo, "grpo": grpo, "gspo": gspo}
"""Functions of the built-in losses, by the `type` of their settings; their parameters are the other settings."""


def named_loss(settings: Loss, given: LossInputs) -> LossOutputs:
    """The loss named by `settings`, with all their parameters except `max_weight`."""
    if isinstance(settings, OwnLoss):
        return call_own(settings, given)
    return LOSSES[settings.type](given, **settings.model_dump(exclude={"type", "max_weight"}))


def token_loss(settings: Loss, given: LossInputs) -> LossOutputs:
    """The per-token loss described by `settings`.

    With a `max_weight`, the ratio is pi_train / pi_start, and the loss is multiplied by the truncated weight pi_start /
    pi_gen. The clip then bounds the trainer's own change rather than its mismatch with the generator (decoupled PPO,
    arXiv 2505.24298; truncated importance sampling, Yao et al. 2025).
    """
    mask_BT, start_BT = given.mask_BT, given.start_BT
    advantage_BT = torch.where(mask_BT, given.advantage_BT, given.advantage_BT.new_zeros(()))
    given = replace(given, advantage_BT=advantage_BT)
    if isinstance(settings, Cispo | OwnLoss) or settings.max_weight is None:
        return named_loss(settings, given)
    assert start_BT is not None, "max_weight needs the log-probabilities of the start of the round"
    truncated = sequence_weight if settings.type == "gspo" else token_weight
    weight = truncated(start_BT, given.behaviour_BT, mask_BT, settings.max_weight)
    found = named_loss(settings, replace(given, behaviour_BT=start_BT))
    return replace(found, loss_BT=weight * found.loss_BT)
