"""KL penalty to a frozen reference policy, estimated from sampled tokens (Schulman 2020, joschu.net/blog/kl-approx).

    r_t = pi_ref(y_t) / pi(y_t)

For tokens drawn from pi, k1 and k3 are unbiased estimates of KL(pi || pi_ref). k2 and k3 are never negative. k3 is the
penalty of GRPO (arXiv 2402.03300).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from scalerl.objective.correction import log_ratio

ESTIMATORS: dict[str, Callable[[Tensor], Tensor]] = {
    "k1": lambda log_r_BT: -log_r_BT,
    "k2": lambda log_r_BT: log_r_BT.square() / 2,
    # expm1: near the reference, r - 1 subtracts two almost equal numbers.
    "k3": lambda log_r_BT: torch.expm1(log_r_BT) - log_r_BT,
}


def token_kl(estimator: str, logprobs_BT: Tensor, reference_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """The estimate at each of the policy's own tokens and 0 elsewhere, [B, T]; the gradient goes to `logprobs_BT`."""
    return ESTIMATORS[estimator](log_ratio(reference_BT, logprobs_BT, mask_BT))
