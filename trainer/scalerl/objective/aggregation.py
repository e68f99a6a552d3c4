"""Weights that reduce per-token losses to one number: loss = sum over tokens of weight x loss.

Three averages have weights that sum to 1; one divides by a constant, and the last is the plain sum.

Tokens off the mask have weight 0. Samples and prompts without own tokens do not count in the mean.
"""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from scalerl.objective.shapes import Shaped
from scalerl.recipe import Own
from scalerl.recipe.own_function import call_own


@dataclass(frozen=True, kw_only=True)
class AggregationInputs(Shaped):
    """Masks of B rollouts for an aggregation: the policy's own tokens, and the rollouts that share a prompt; on the
    host."""

    mask_BT: Tensor
    """True if the policy chose the token itself."""
    group_B: Tensor
    """Number of the rollout's prompt, from 0."""
    token_limit: int
    """Maximum number of tokens that the policy may choose in a rollout."""


@dataclass(frozen=True, kw_only=True)
class AggregationOutputs(Shaped):
    """The weight of every token's loss, 0 off the mask."""

    weight_BT: Tensor


def token_average(given: AggregationInputs) -> AggregationOutputs:
    """1 / number of all tokens, [B, T] (DAPO, arXiv 2503.14476)."""
    return AggregationOutputs(weight_BT=given.mask_BT / given.mask_BT.sum().clamp(min=1))


def sample_average(given: AggregationInputs) -> AggregationOutputs:
    """1 / (number of samples x tokens of the sample), [B, T] (GRPO, arXiv 2402.03300)."""
    tokens_B = given.mask_BT.sum(dim=1)
    num_samples = (tokens_B > 0).sum().clamp(min=1)
    return AggregationOutputs(weight_BT=given.mask_BT / (num_samples * tokens_B.clamp(min=1)).unsqueeze(1))


def prompt_average(given: AggregationInputs) -> AggregationOutputs:
    """1 / (number of prompts x tokens of all the prompt's samples), [B, T] (ScaleRL §3.2)."""
    mask_BT, group_B = given.mask_BT, given.group_B
    tokens_B = mask_BT.sum(dim=1)
    tokens_P = tokens_B.new_zeros(int(group_B.max()) + 1).index_add(0, group_B, tokens_B)
    num_prompts = (tokens_P > 0).sum().clamp(min=1)
    return AggregationOutputs(weight_BT=mask_BT / (num_prompts * tokens_P[group_B].clamp(min=1)).unsqueeze(1))


def constant_average(given: AggregationInputs) -> AggregationOutputs:
    """1 / (number of samples x token limit), [B, T] (Dr. GRPO, arXiv 2503.20783)."""
    num_samples = given.mask_BT.any(dim=1).sum().clamp(min=1)
    return AggregationOutputs(weight_BT=given.mask_BT / (num_samples * given.token_limit))


def token_sum(given: AggregationInputs) -> AggregationOutputs:
    """1, [B, T]: the plain sum over all tokens of the batch."""
    return AggregationOutputs(weight_BT=given.mask_BT.float())


AGGREGATIONS: dict[str, Callable[[AggregationInputs], AggregationOutputs]] = {
    "prompt": prompt_average,
    "sample": sample_average,
    "token": token_average,
    "constant": constant_average,
    "sum": token_sum,
}


def token_weights(aggregation: str | Own, given: AggregationInputs) -> Tensor:
    """Weights [B, T] of the built-in aggregation of this name, or of the user's own function."""
    found = call_own(aggregation, given) if isinstance(aggregation, Own) else AGGREGATIONS[aggregation](given)
    return found.weight_BT
