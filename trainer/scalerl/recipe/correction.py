"""Correction for tokens to which the trainer and the generator give different probabilities; combines with any loss."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from scalerl.frozen import Frozen, Positive, Unit

Of = Literal["token", "sequence", "geometric"]


class NoCorrection(Frozen):
    """Leaves the loss as it is; its own ratio compares pi_train with pi_gen."""

    type: Literal["none"] = "none"


class Truncate(Frozen):
    """Truncated importance sampling (Yao et al. 2025): the loss takes its ratio from pi_start, and is multiplied by the
    weight pi_start / pi_gen within bounds, without a gradient of its own.

    pi_start is the policy at the start of the round: under ppo_off_policy the policy that generated the batch,
    otherwise the policy before the first step on the batch. It costs one forward pass per batch (decoupled PPO, arXiv
    2505.24298).
    """

    type: Literal["truncate"] = "truncate"
    of: Of = "token"
    """Weight of a token: its own ratio, the product of the ratios of its sequence, or their geometric mean."""
    low: Annotated[float, Field(ge=0, le=1e9), Unit("ratio")] = 0.0
    """Smallest weight; smaller ones are raised to it."""
    high: Annotated[float, Field(gt=0, le=1e9), Unit("ratio")] = 2.0
    """Largest weight; larger ones are lowered to it (3 in TRL)."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _refuse_empty_band(self.low, self.high)
        return self


class RatioMask(Frozen):
    """Leaves out tokens whose ratio lies outside a band; they still count in the averages of the loss.

    A band with two ends on tokens is IcePop's (arXiv 2510.18855), on products TRL's `sequence_mask`, on geometric means
    the geometric rejection of verl and SkyRL.
    """

    type: Literal["mask"] = "mask"
    of: Of = "token"
    """Ratio that must lie in the band: the token's own, the product of the ratios of its sequence, or their geometric
    mean. The last two keep or leave out a whole sequence."""
    policy: Literal["train", "start"] = "train"
    """Policy whose ratio to pi_gen must lie in the band. train: the policy being trained, in every optimiser step; the
    loss stays as it is. start: the policy at the start of the round; the loss then takes its ratio from pi_start, and
    is multiplied by the weight pi_start / pi_gen of what is kept, as in `truncate`."""
    low: Annotated[float, Field(ge=0, le=1e9), Unit("ratio")] = 0.0
    """Lower end of the band."""
    high: Annotated[float, Field(gt=0, le=1e9), Unit("ratio")] | None = 3.0
    """Upper end of the band; null for none."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _refuse_empty_band(self.low, self.high)
        if self.low == 0 and self.high is None:
            raise ValueError("a band from 0 without an upper bound masks nothing; set low or high, or use type 'none'")
        return self


class TrustRegion(Frozen):
    """Leaves out tokens that have moved too far from pi_gen already and that the step would move further (DPPO, arXiv
    2602.04879): those with A > 0 above pi_gen, and those with A < 0 below it.

    The distance is that of two outcomes, this token or another. A ratio would exaggerate the distance of rare tokens.
    """

    type: Literal["trust_region"] = "trust_region"
    of: Literal["tv", "kl"] = "tv"
    """tv: the total variation |pi_train - pi_gen| of the token; kl: KL(pi_gen || pi_train) of the two outcomes."""
    low: Annotated[Positive, Unit("probability or nats")] = 0.2
    """Largest distance at which a token with A < 0 that has become less likely is trained further."""
    high: Annotated[Positive, Unit("probability or nats")] = 0.2
    """Largest distance at which a token with A > 0 that has become more likely is trained further."""


def _refuse_empty_band(low: float, high: float | None) -> None:
    if high is not None and low >= high:
        raise ValueError(f"low {low:g} must lie below high {high:g}")


Correction = Annotated[NoCorrection | Truncate | RatioMask | TrustRegion, Field(discriminator="type")]
