"""Entropy of the policy with its gradient, for an entropy bonus (PPO, arXiv 1707.06347)."""

from torch import Tensor
from torch.nn import functional as F

from scalerl.model import Policy


def entropy(logprobs_BTV: Tensor) -> Tensor:
    """H = -sum_v p_v log p_v in nats, [B, T]; dH / dlogit_v = -p_v (log p_v + H)."""
    return -(logprobs_BTV.exp() * logprobs_BTV).sum(-1)


def logprobs_and_entropy(policy: Policy, tokens_BT: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """What `Policy.token_logprobs` gives, both [B, T] and 0 at position 0, the entropy with its gradient too."""
    logits_BTV = policy.logits(policy.hidden(tokens_BT)[:, :-1]) / temperature
    logprobs_BTV = logits_BTV.log_softmax(-1)
    chosen = logprobs_BTV.gather(-1, tokens_BT[:, 1:].unsqueeze(-1)).squeeze(-1)
    return F.pad(chosen, (1, 0)), F.pad(entropy(logprobs_BTV), (1, 0))
