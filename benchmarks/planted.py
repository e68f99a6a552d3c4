"""Functions that make a run go wrong, for `doctor_planted.py`: rewards, a loss and a curriculum as a user might write
them by mistake."""

import numpy as np
import torch

from scalerl.objective.losses import LossInputs, LossOutputs
from scalerl.objective.rewards import RewardInputs, RewardOutputs
from scalerl.prompts.own_pool import CurriculumInputs, CurriculumOutputs


def pays_length(given: RewardInputs) -> RewardOutputs:
    """A reward that pays for length alone."""
    return RewardOutputs(reward=given.length / given.max_length)


def pays_length_too(given: RewardInputs) -> RewardOutputs:
    """A reward that pays more for length than for a right answer."""
    return RewardOutputs(reward=0.2 * (given.outcome == "right") + given.length / given.max_length)


def pays_short(given: RewardInputs) -> RewardOutputs:
    """A reward that pays for short answers alone."""
    return RewardOutputs(reward=-given.length / given.max_length)


def pays_nonsense(given: RewardInputs) -> RewardOutputs:
    """A reward with its sign wrong for answers that cannot be read."""
    return RewardOutputs(reward=1.0 if given.outcome == "unparsable" else 0.0)


def imitates_itself(given: LossInputs) -> LossOutputs:
    """A loss that forgot the advantage."""
    loss_BT = torch.where(given.mask_BT, -given.logprobs_BT, 0.0)
    return LossOutputs(loss_BT=loss_BT, clipped_BT=torch.zeros_like(given.mask_BT))


def first_only(given: CurriculumInputs) -> CurriculumOutputs:
    """A curriculum that draws one prompt for ever."""
    weight_N = np.zeros_like(given.pass_rate_N)
    weight_N[0] = 1.0
    return CurriculumOutputs(weight_N=weight_N)
