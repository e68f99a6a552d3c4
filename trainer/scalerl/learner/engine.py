"""What holds a network and its optimiser, whatever trains: one process, or several that each hold a shard.

The learner (`torch_learner`, `critic`) is the algorithm and knows no shards; an engine knows no algorithm. A network is
asked through its `forward`, where engines hook in, and answers in a tuple: what looks for tensors to hook on to finds
them in tuples, not in dataclasses.
"""

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from scalerl.learner.ranks import Ranks
from scalerl.model.policy import Policy, Scores
from scalerl.recipe import Optimiser


class Network(Protocol):
    """A network on all of its ranks. Every method is collective: all ranks call it in the same order."""

    def __call__(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
        """What its `forward` says; without a gradient unless it is an engine's."""
        ...

    def whole(self) -> nn.Module:
        """It with all of its present weights, in this process. What is done to it reaches the ranks by `take`."""
        ...

    def take(self) -> None:
        """Give the ranks the weights that `whole` has now."""

    def copy_from(self, engine: "Engine") -> None:
        """Take over the present weights of an engine that trains a network like this."""


class Engine(Network, Protocol):
    """A network, its AdamW, and the ranks they lie on.

    One step: `zero_grad`, then `backward` of each pass, `norm`, and either `step` or `skip`.
    """

    ranks: Ranks

    def frozen(self, network: nn.Module) -> Network:
        """A network of the same kind without an optimiser, as sharded as this one; it takes `network` over."""
        ...

    def zero_grad(self) -> None:
        """Forget the gradient."""

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradient of `loss`; over ranks they are summed, never averaged. `last`: of this rank's passes."""

    def gradients(self) -> list[nn.Parameter]:
        """The parameters whose `grad` may be divided before `norm`; only those of an engine that scales FP16 losses."""
        ...

    def norm(self, max_norm: float | None) -> float:
        """The norm of the whole gradient, which is then scaled down to `max_norm`; NaN or infinite where it is."""
        ...

    def step(self, rate: float) -> None:
        """One step of AdamW at this learning rate, on a gradient that is finite."""

    def skip(self) -> None:
        """Leave weights and moments as they are and forget the gradient."""

    def moments(self) -> dict[str, Any]:
        """AdamW's state as `torch.optim.AdamW.state_dict` gives it for the whole network, whatever the engine."""
        ...

    def take_moments(self, state: dict[str, Any]) -> None:
        """Go on from what `moments` gave, of this or of another engine."""


class Scorer(nn.Module):
    """A policy whose `forward` is its `score`."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, *arguments: Any, **named: Any) -> tuple[Tensor, Tensor, Tensor | None]:
        """Log-probabilities, entropy and balance of `Scores`."""
        scores = self.policy.score(*arguments, **named)
        return scores.logprobs_BT, scores.entropy_BT, scores.balance_B


class ScoringNetwork:
    """A network of a `Scorer`, spoken to as if it were the policy."""

    def __init__(self, network: Network) -> None:
        self.network = network

    @property
    def policy(self) -> Policy:
        """The policy with all of its present weights."""
        scorer = self.network.whole()
        assert isinstance(scorer, Scorer)
        return scorer.policy

    def score(self, *arguments: Any, **named: Any) -> Scores:
        """As `Policy.score`, which says what may be asked."""
        logprobs_BT, entropy_BT, balance_B = self.network(*arguments, **named)
        return Scores(logprobs_BT=logprobs_BT, entropy_BT=entropy_BT, balance_B=balance_B)


Scoring = Policy | ScoringNetwork
"""Whatever says how probable tokens are: a policy, or a network of one on its ranks."""


class EngineMaker(Protocol):
    """Makes the engines of a run: one for the policy, one for a critic."""

    ranks: Ranks

    def make(self, network: nn.Module, optimiser: Optimiser) -> Engine:
        """An engine that takes `network` over; collective."""
        ...


def adamw(network: nn.Module, optimiser: Optimiser) -> torch.optim.AdamW:
    """AdamW as the recipe sets it."""
    return torch.optim.AdamW(
        network.parameters(),
        lr=optimiser.learning_rate,
        betas=(optimiser.beta1, optimiser.beta2),
        eps=optimiser.eps,
        weight_decay=optimiser.weight_decay,
        fused=True,
    )
