"""Choice of the groups in the loss and its averages: those whose rewards differ (ScaleRL §3.2), all, or those that a
user's rule selects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from scalerl.objective.advantages import Rewards
from scalerl.objective.shapes import Shaped
from scalerl.recipe import Own
from scalerl.recipe.own_function import call_own
from scalerl.rollout import Group


@dataclass(frozen=True, kw_only=True)
class GroupInputs(Shaped):
    """P groups with up to G generations each, on the host; values of missing generations are 0."""

    rewards_PG: Tensor
    mask_PG: Tensor
    """True if the generation exists."""
    right_PG: Tensor
    """True if the answer is right."""
    truncated_PG: Tensor
    """True if the token limit came before the end of the answer."""
    length_PG: Tensor
    """Tokens of the generation; of an episode, those of its turns."""

    @classmethod
    def of(cls, groups: Sequence[Group]) -> Self:
        """The record of these groups, in their order."""
        rewards = Rewards.of([group.rewards for group in groups])

        def padded(values: list[list[float]]) -> Tensor:
            return Rewards.of(values).rewards_PG

        return cls(
            rewards_PG=rewards.rewards_PG,
            mask_PG=rewards.mask_PG,
            right_PG=padded([[one == "right" for one in group.outcomes] for group in groups]).bool(),
            truncated_PG=padded([[one.truncated for one in group.rollouts] for group in groups]).bool(),
            length_PG=padded([[one.num_written for one in group.rollouts] for group in groups]).long(),
        )


@dataclass(frozen=True, kw_only=True)
class GroupOutputs(Shaped):
    """True for each group that is trained on."""

    is_trained_P: Tensor


def all_groups(given: GroupInputs) -> GroupOutputs:
    """Every group."""
    return GroupOutputs(is_trained_P=torch.ones_like(given.mask_PG[:, 0]))


def varied_groups(given: GroupInputs) -> GroupOutputs:
    """Groups whose rewards are not all the same."""
    differs_PG = (given.rewards_PG != given.rewards_PG[:, :1]) & given.mask_PG
    return GroupOutputs(is_trained_P=differs_PG.any(dim=1))


GROUP_RULES: dict[str, Callable[[GroupInputs], GroupOutputs]] = {
    "keep": all_groups,
    "drop": varied_groups,
    "resample": varied_groups,
}


def trained_groups(rule: str | Own, groups: Sequence[Group]) -> list[bool]:
    """True for each group that is trained on, by the built-in rule of this name or by the user's own."""
    if not groups:
        return []
    given = GroupInputs.of(groups)
    if isinstance(rule, Own):
        return call_own(rule, given).is_trained_P.tolist()
    found = GROUP_RULES[rule](given).is_trained_P.tolist()
    # With credit by turn, turns may differ where whole episodes do not.
    return [is_trained or not group.zero_variance for is_trained, group in zip(found, groups, strict=True)]
