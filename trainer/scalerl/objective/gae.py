"""Advantages from a value network: GAE (arXiv 1506.02438) and PPO's clipped value loss (arXiv 1707.06347).

The states of a rollout are those in which the policy chose a token. Forced tokens and padding are skipped: the
successor of an own token is the next own token, and the last one ends the episode. V_t is the value of the state in
which token t was chosen, so it depends only on the tokens before t.
"""

import torch
from torch import Tensor

from scalerl.objective.advantages import STD_EPS
from scalerl.objective.losses import LossOutputs


def gae(rewards_BT: Tensor, values_BT: Tensor, mask_BT: Tensor, gamma: float, gae_lambda: float) -> Tensor:
    """A_t = delta_t + gamma lambda A_t',  delta_t = r_t + gamma V_t' - V_t, with t' the next own token; 0 off the mask.

    After the last own token, V and A are 0.
    """
    advantage_BT = torch.zeros_like(values_BT)
    value_B, advantage_B = torch.zeros_like(values_BT[:, 0]), torch.zeros_like(values_BT[:, 0])
    for t in reversed(range(values_BT.shape[1])):
        own_B = mask_BT[:, t]
        delta_B = rewards_BT[:, t] + gamma * value_B - values_BT[:, t]
        advantage_B = torch.where(own_B, delta_B + gamma * gae_lambda * advantage_B, advantage_B)
        value_B = torch.where(own_B, values_BT[:, t], value_B)
        advantage_BT[:, t] = torch.where(own_B, advantage_B, 0.0)
    return advantage_BT


def standardised(advantage_BT: Tensor, mask_BT: Tensor, own_M: Tensor) -> Tensor:
    """(A - mean A) / (std A + eps) over all own tokens of the batch, whose advantages are `own_M`; 0 off the mask."""
    return torch.where(mask_BT, (advantage_BT - own_M.mean()) / (own_M.std(correction=0) + STD_EPS), 0.0)


def value_loss(
    values_BT: Tensor, old_BT: Tensor, returns_BT: Tensor, mask_BT: Tensor, *, clip: float | None
) -> LossOutputs:
    """max((V - R)^2, (V_old + clip(V - V_old, -c, c) - R)^2) / 2, and True for each token whose second term is larger.

    Without a clip, only the first term is used. Off the mask both are 0 and carry no gradient.
    """
    values_BT, old_BT, returns_BT = (torch.where(mask_BT, x, 0.0) for x in (values_BT, old_BT, returns_BT))
    free_BT = (values_BT - returns_BT).square()
    if clip is None:
        return LossOutputs(loss_BT=free_BT / 2, clipped_BT=torch.zeros_like(mask_BT))
    moved_BT = values_BT - old_BT
    clipped_BT = (old_BT + moved_BT.clamp(-clip, clip) - returns_BT).square()
    # Within the clip both terms are equal up to rounding.
    decided_BT = (clipped_BT > free_BT) & (moved_BT.abs() > clip)
    return LossOutputs(loss_BT=torch.maximum(free_BT, clipped_BT) / 2, clipped_BT=decided_BT)


def variances(values_M: Tensor, returns_M: Tensor) -> tuple[Tensor, Tensor]:
    """Var(R - V) and Var(R) over own tokens, in float64."""
    values, returns = values_M.double(), returns_M.double()
    return (returns - values).var(correction=0), returns.var(correction=0)


def explained_variance(residual: float, spread: float) -> float | None:
    """1 - Var(R - V) / Var(R): 1 if V predicts every return, 0 if no better than a constant; None if R is constant."""
    return 1 - residual / spread if spread > 0 else None
