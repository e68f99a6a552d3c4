"""Policy losses to minimise, one value per token; `aggregation` reduces them to one number.

Every loss is a function from `LossInputs` and its own parameters to `LossOutputs`. Off the mask, loss and clip are 0
and carry no gradient, for any inputs: values are masked before they are multiplied, because 0 x NaN is NaN.

    rho_t = pi_train(y_t) / pi_gen(y_t)
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from scalerl.objective.correction import (
    Factors,
    in_trust_region,
    log_ratio,
    masked,
    mean_log_ratio,
    truncated,
)
from scalerl.objective.shapes import Shaped
from scalerl.recipe import Correction, Loss, OwnLoss, RatioMask, TrustRegion
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


def clipped_surrogate(
    ratio_BT: Tensor, advantage_BT: Tensor, mask_BT: Tensor, *, low: float, high: float, delta: float | None = None
) -> LossOutputs:
    """-min(min(rho, delta) A, clip(rho, 1 - low, 1 + high) A), and True if a bound is active (PPO, arXiv 1707.06347).

    `delta`, above 1 + high, bounds the weight of a wrong answer's tokens (arXiv 2505.07291).
    """
    bounded = ratio_BT if delta is None else ratio_BT.clamp(max=delta)
    free = bounded * advantage_BT
    clipped = ratio_BT.clamp(1 - low, 1 + high) * advantage_BT
    is_active = (clipped < free) | ((bounded < ratio_BT) & (advantage_BT < 0))
    return LossOutputs(loss_BT=-torch.minimum(free, clipped) * mask_BT, clipped_BT=is_active & mask_BT)


def cispo(given: LossInputs, *, min_ratio: float, max_ratio: float) -> LossOutputs:
    """-stop_gradient(clip(rho, min_ratio, max_ratio)) A log pi_train (arXiv 2506.13585)."""
    ratio = log_ratio(given.logprobs_BT, given.behaviour_BT, given.mask_BT).detach().exp()
    weight = ratio.clamp(min_ratio, max_ratio)
    logprobs = torch.where(given.mask_BT, given.logprobs_BT, given.logprobs_BT.new_zeros(()))
    return LossOutputs(loss_BT=-weight * given.advantage_BT * logprobs, clipped_BT=given.mask_BT & (weight != ratio))


def dapo(given: LossInputs, *, clip_low: float, clip_high: float, delta: float | None) -> LossOutputs:
    """The clipped surrogate with separate lower and upper bounds (arXiv 2503.14476)."""
    ratio = log_ratio(given.logprobs_BT, given.behaviour_BT, given.mask_BT).exp()
    return clipped_surrogate(ratio, given.advantage_BT, given.mask_BT, low=clip_low, high=clip_high, delta=delta)


def grpo(given: LossInputs, *, clip: float, delta: float | None) -> LossOutputs:
    """The clipped surrogate with the same bound on both sides (arXiv 2402.03300)."""
    return dapo(given, clip_low=clip, clip_high=clip, delta=delta)


def gspo(given: LossInputs, *, clip_low: float, clip_high: float) -> LossOutputs:
    """The clipped surrogate on s = (prod_t rho_t)^(1 / |y|), one ratio for a sequence (arXiv 2507.18071)."""
    mask_BT = given.mask_BT
    ratio_B1 = mean_log_ratio(log_ratio(given.logprobs_BT, given.behaviour_BT, mask_BT), mask_BT).exp()
    return clipped_surrogate(ratio_B1.expand_as(mask_BT), given.advantage_BT, mask_BT, low=clip_low, high=clip_high)


LOSSES: dict[str, Callable[..., LossOutputs]] = {"cispo": cispo, "dapo": dapo, "grpo": grpo, "gspo": gspo}
"""Functions of the built-in losses, by the `type` of their settings; their parameters are the other settings."""


def named_loss(settings: Loss, given: LossInputs) -> LossOutputs:
    """The loss named by `settings`, with all their parameters."""
    if isinstance(settings, OwnLoss):
        return call_own(settings, given)
    return LOSSES[settings.type](given, **settings.model_dump(exclude={"type"}))


def token_loss(settings: Loss, correction: Correction, given: LossInputs) -> tuple[LossOutputs, Factors | None]:
    """The per-token loss described by `settings`, multiplied by the factors of the correction; these are None if there
    is no correction.

    If the correction weighs by pi_start / pi_gen, the ratio of the loss is pi_train / pi_start: its clip bounds the
    trainer's own change rather than its gap to the generator (decoupled PPO, arXiv 2505.24298).
    """
    mask_BT = given.mask_BT
    advantage_BT = torch.where(mask_BT, given.advantage_BT, given.advantage_BT.new_zeros(()))
    given = replace(given, advantage_BT=advantage_BT)
    if correction.type == "none":
        return named_loss(settings, given), None
    train_BT = given.logprobs_BT.detach()
    if isinstance(correction, TrustRegion):
        factors = in_trust_region(correction, train_BT, given.behaviour_BT, advantage_BT, mask_BT)
    elif isinstance(correction, RatioMask) and correction.policy == "train":
        factors = masked(correction, log_ratio(train_BT, given.behaviour_BT, mask_BT), mask_BT)
    else:
        assert given.start_BT is not None, "the correction needs the log-probabilities of the start of the round"
        log_r_BT = log_ratio(given.start_BT, given.behaviour_BT, mask_BT)
        if isinstance(correction, RatioMask):
            factors = masked(correction, log_r_BT, mask_BT)
        else:
            factors = truncated(correction, log_r_BT, mask_BT)
        given = replace(given, behaviour_BT=given.start_BT)
    found = named_loss(settings, given)
    return replace(found, loss_BT=factors.factor_BT * found.loss_BT), factors
