"""Functions of a user's own, written to files as a user would write them."""

from scalerl.recipe import OwnLoss

HEAD = """\
import torch
from scalerl.objective.losses import LossInputs, LossOutputs, log_ratio


"""
GOOD = """\
def mine(given, *, beta=1.0):
    ratio = log_ratio(given.logprobs_BT, given.behaviour_BT, given.mask_BT).detach().exp()
    logprobs = torch.where(given.mask_BT, given.logprobs_BT, 0.0)
    loss = -ratio.clamp(max=beta) * given.advantage_BT * logprobs
    return LossOutputs(loss_BT=loss, clipped_BT=given.mask_BT & (ratio > beta))
"""
"""A loss whose body begins in line 6 of its file: CISPO with `max_ratio` beta."""


def written(folder, body=GOOD, head=HEAD, file="my_ideas/losses.py"):
    """The file's path after writing it."""
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + body)
    return path


def own_loss(folder, body=GOOD, **settings):
    """Settings of the loss `mine` in a new file of the folder."""
    written(folder, body)
    return OwnLoss(function="my_ideas.losses:mine", folder=str(folder), **settings)
