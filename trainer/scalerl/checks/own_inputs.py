"""Made-up inputs for each kind of user function, and the built-in function to compare its time with."""

import random
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scalerl.objective.advantages import AdvantageOutputs, Rewards, normalise_batch
from scalerl.objective.aggregation import AggregationInputs, AggregationOutputs, prompt_average
from scalerl.objective.losses import LossInputs, LossOutputs, cispo
from scalerl.objective.rewards import RewardInputs, RewardOutputs, verdict_reward
from scalerl.objective.trained_groups import GroupInputs, GroupOutputs, varied_groups
from scalerl.recipe import Own, OwnLoss
from scalerl.rollout import Outcome

GENERATIONS = 4


@dataclass(frozen=True, kw_only=True)
class OwnKind:
    """Inputs and output of a user's function for one setting."""

    inputs: Callable[[Own, int, int, int], tuple[Any, ...]]
    """Made-up inputs, each for one call, from the settings, numbers of rows and columns, and a seed."""
    output: type
    """Record that it returns."""
    places: dict[str, str]
    """Mask, among the inputs, of the values that count in each output tensor; "" if all count."""
    built_in: Callable[[Any], Any]
    built_in_name: str


def loss_inputs(own: Own, rows: int, columns: int, seed: int) -> tuple[LossInputs, ...]:
    """A batch whose mask has prompt, forced and padding tokens, and a row without own tokens."""
    drawn = torch.Generator().manual_seed(seed)
    shape = (rows, columns)
    logprobs = -torch.rand(shape, generator=drawn) * 3
    noise = torch.randn((2, *shape), generator=drawn) * 0.3
    advantage = torch.randn((rows, 1), generator=drawn).expand(shape)
    mask = token_mask(rows, columns)
    given = LossInputs(
        logprobs_BT=logprobs,
        behaviour_BT=torch.where(mask, logprobs + noise[0], 0.0),
        advantage_BT=torch.where(mask, advantage, 0.0),
        mask_BT=mask,
        start_BT=logprobs + noise[1] if isinstance(own, OwnLoss) and own.start else None,
    )
    return (given,)


def token_mask(rows: int, columns: int) -> Tensor:
    """Mask of the tokens that a policy chose: False in a prompt at the start, in a gap, after an early end, and in the
    last row."""
    mask = torch.rand((rows, columns), generator=torch.Generator().manual_seed(7)) < 0.7
    mask[:, : columns // 4], mask[0, columns // 2 :], mask[-1] = False, False, False
    return mask


def aggregation_inputs(own: Own, rows: int, columns: int, seed: int) -> tuple[AggregationInputs, ...]:
    """The mask of such a batch, with groups of GENERATIONS rollouts."""
    groups = torch.arange(rows) // GENERATIONS
    return (AggregationInputs(mask_BT=token_mask(rows, columns), group_B=groups, token_limit=columns),)


def made_up_rewards(own: Own, rows: int, columns: int, seed: int) -> tuple[Rewards, ...]:
    """Rewards between -1 and 1, two generations missing, and one group of equal rewards."""
    drawn = torch.Generator().manual_seed(seed)
    rewards = torch.rand((rows, columns), generator=drawn, dtype=torch.float64) * 2 - 1
    rewards[1] = 1.0
    mask = torch.ones((rows, columns), dtype=torch.bool)
    mask[0, -2:] = False
    return (Rewards(rewards_PG=torch.where(mask, rewards, 0.0), mask_PG=mask),)


def group_inputs(own: Own, rows: int, columns: int, seed: int) -> tuple[GroupInputs, ...]:
    """Groups with such rewards."""
    (given,) = made_up_rewards(own, rows, columns, seed)
    drawn = torch.Generator().manual_seed(seed)
    length = torch.randint(1, 90, (rows, columns), generator=drawn)
    return (
        GroupInputs(
            rewards_PG=given.rewards_PG,
            mask_PG=given.mask_PG,
            right_PG=(given.rewards_PG > 0) & given.mask_PG,
            truncated_PG=(length > 80) & given.mask_PG,
            length_PG=torch.where(given.mask_PG, length, 0),
        ),
    )


def reward_inputs(own: Own, rows: int, columns: int, seed: int) -> tuple[RewardInputs, ...]:
    """Answers of each verdict and several lengths, the longest at the limit, some with a partial score."""
    verdicts: tuple[tuple[Outcome, float | None, float], ...] = (
        ("right", None, 1.0),
        ("wrong", None, -1.0),
        ("wrong", 0.5, 0.0),
        ("unparsable", None, -1.0),
    )
    return tuple(
        RewardInputs(outcome=outcome, score=score, length=length, max_length=columns, earned=earned)
        for outcome, score, earned in verdicts
        for length in (1, columns // 2, columns)
    )


def else_off_the_mask(kind: OwnKind, own: Own, given: Any, mask: str) -> Any:
    """Copy of the inputs with different values where the mask of this name is False."""
    rows, columns = getattr(given, mask).shape
    (other,) = kind.inputs(own, rows, columns, 2)
    changed = {}
    for field in fields(given):
        value = getattr(given, field.name)
        if isinstance(value, Tensor) and field.name != mask and value.shape == getattr(given, mask).shape:
            replacement = ~value if value.dtype == torch.bool else getattr(other, field.name) - 1
            changed[field.name] = torch.where(getattr(given, mask), value, replacement)
    return replace(given, **changed)


def seeded(seed: int, function: Callable[..., Any], *given: Any) -> Any:
    """The function's answer, with all random number generators in the same state for the same seed."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)
    return function(*given)


OWN_KINDS = {
    "loss": OwnKind(
        inputs=loss_inputs,
        output=LossOutputs,
        places={"loss_BT": "mask_BT", "clipped_BT": "mask_BT"},
        built_in=lambda given: cispo(given, min_ratio=0.0, max_ratio=5.0),
        built_in_name="cispo",
    ),
    "aggregation": OwnKind(
        inputs=aggregation_inputs,
        output=AggregationOutputs,
        places={"weight_BT": "mask_BT"},
        built_in=prompt_average,
        built_in_name="prompt",
    ),
    "advantage": OwnKind(
        inputs=made_up_rewards,
        output=AdvantageOutputs,
        places={"advantage_PG": "mask_PG"},
        built_in=normalise_batch,
        built_in_name="batch",
    ),
    "zero_variance": OwnKind(
        inputs=group_inputs,
        output=GroupOutputs,
        places={"is_trained_P": ""},
        built_in=varied_groups,
        built_in_name="drop",
    ),
    "reward": OwnKind(
        inputs=reward_inputs,
        output=RewardOutputs,
        places={},
        built_in=verdict_reward,
        built_in_name="verdict",
    ),
}
"""Kinds of functions by setting."""
