"""The size of AdamW's last update beside the weights (arXiv 1711.05101), from what is left after it:

w' = w - lr (u + decay w),    u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
w' - w = -lr (u + decay w') / (1 - lr decay)                                        size = |w' - w| / |w'|
"""

from typing import Any

import torch
from torch import Tensor


@torch.no_grad()
def update_size(adam: torch.optim.AdamW) -> float | None:
    """|w' - w| / |w'| in L2 over all trained weights; None before the first step.

    Works tensor by tensor, since a copy of all weights would take their memory again.
    """
    moved, size = [], []
    for group in adam.param_groups:
        for weight in group["params"]:
            if state := adam.state.get(weight):
                moved.append(torch.linalg.vector_norm(_update(weight, group, state)))
                size.append(torch.linalg.vector_norm(weight.float()))
    if not moved:
        return None
    of_update, of_weights = (torch.linalg.vector_norm(torch.stack(each)) for each in (moved, size))
    return float(of_update / of_weights)


def _update(weight: Tensor, group: dict[str, Any], state: dict[str, Tensor]) -> Tensor:
    (beta1, beta2), lr, decay, t = group["betas"], group["lr"], group["weight_decay"], state["step"].to(weight.device)
    mean, square = state["exp_avg"].float() / (1 - beta1**t), state["exp_avg_sq"].float() / (1 - beta2**t)
    return lr * (mean / (square.sqrt() + group["eps"]) + decay * weight.float()) / (1 - lr * decay)
