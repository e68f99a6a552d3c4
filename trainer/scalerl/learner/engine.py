"""What holds a network and its optimiser, whatever trains: one process, or several that each hold a shard.

The learner (`torch_learner`, `critic`) is the algorithm and knows no shards; an engine knows no algorithm. A network is
asked through its `forward`, where engines hook in, and answers in a tuple: what looks for tensors to hook on to finds
them in tuples, not in dataclasses.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from scalerl.learner.pieces import MOMENTS, InMemory, KeptPiece, PieceFiles, TensorSource, weights_in_memory
from scalerl.learner.ranks import Ranks
from scalerl.model.outline import PolicyParts
from scalerl.model.policy import Policy, Scores
from scalerl.recipe import Optimiser
from scalerl.weights.hugging_face import Weights


class Network(Protocol):
    """A network on all of its ranks. Every method is collective: all ranks call it in the same order."""

    network: nn.Module
    """Its modules; what their parameters hold is the engine's affair."""

    def __call__(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
        """What its `forward` says; without a gradient unless it is an engine's."""
        ...

    def whole(self) -> nn.Module | None:
        """It with all of its present weights, in this process; None where it was made from an outline alone.

        What is done to it reaches the ranks by `fill`.
        """
        ...

    def layers(self) -> Iterator[dict[str, Tensor]]:
        """All present weights by name, those of one layer at a time; they may be gone when the next ones come."""
        ...

    def kept(self) -> Iterator[KeptPiece]:
        """What this rank keeps; all ranks together everything once, an engine's moments too. Nothing is gathered."""
        ...

    def fill(self, source: TensorSource) -> None:
        """Take these weights; every rank reads what it keeps."""

    def copy_from(self, engine: "Engine") -> None:
        """Take over the present weights of an engine that trains a network like this."""


class Engine(Network, Protocol):
    """A network, its AdamW, and the ranks they lie on.

    One step: `zero_grad`, then `backward` of each pass, `norm`, and either `step` or `skip`.
    """

    ranks: Ranks

    def frozen(self, network: nn.Module, source: TensorSource | None = None) -> Network:
        """A network of the same kind without an optimiser, as sharded as this one; arguments as for `make`."""
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

    def moments(self) -> dict[str, Any] | None:
        """AdamW's state as `torch.optim.AdamW.state_dict` gives it; None where `kept` has it in pieces."""
        ...

    def steps(self) -> dict[str, int]:
        """How many AdamW has taken, by name of a parameter; without those that never had a gradient."""
        ...

    def take_moments(self, moments: Mapping[str, TensorSource], steps: Mapping[str, int]) -> None:
        """Go on from AdamW's moments, by name of each, and from what `steps` was then."""


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
    def outline(self) -> Policy:
        """The policy's modules, wherever its weights lie."""
        return policy_in(self.network.network)

    @property
    def policy(self) -> Policy | None:
        """The policy with all of its present weights; None where no process has room for them."""
        whole = self.network.whole()
        return None if whole is None else policy_in(whole)

    def exported_layers(self) -> Iterator[Weights]:
        """Its weights under the names of its file, those of one layer at a time."""
        for layer in self.network.layers():
            yield self.outline.exported_part(without_prefix(layer))

    def take(self, weights: Weights) -> None:
        """Go on with weights under the names of its file."""
        policy = self.policy
        if policy is None:
            self.network.fill(PolicyParts(self.outline, weights, POLICY))
        else:
            policy.import_weights(weights)
            self.network.fill(weights_in_memory(Scorer(policy)))

    def score(self, *arguments: Any, **named: Any) -> Scores:
        """As `Policy.score`, which says what may be asked."""
        logprobs_BT, entropy_BT, balance_B = self.network(*arguments, **named)
        return Scores(logprobs_BT=logprobs_BT, entropy_BT=entropy_BT, balance_B=balance_B)


Scoring = Policy | ScoringNetwork
"""Whatever says how probable tokens are: a policy, or a network of one on its ranks."""


class EngineMaker(Protocol):
    """Makes the engines of a run: one for the policy, one for a critic."""

    ranks: Ranks

    def make(self, network: nn.Module, optimiser: Optimiser, source: TensorSource | None = None) -> Engine:
        """An engine that takes `network` over, which has its weights or is an outline of the source's; collective."""
        ...


POLICY = "policy."
"""What stands before a policy's own names in a `Scorer`."""


def policy_in(scorer: nn.Module) -> Policy:
    """The policy that a `Scorer` asks."""
    assert isinstance(scorer.policy, Policy)
    return scorer.policy


def without_prefix(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Under the policy's own names."""
    return {name.removeprefix(POLICY): tensor for name, tensor in weights.items()}


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


def adam_steps(network: nn.Module, adam: torch.optim.AdamW) -> dict[str, int]:
    """Steps by name of a parameter, as AdamW counts them."""
    return {
        name: int(adam.state[parameter]["step"])
        for name, parameter in network.named_parameters()
        if "step" in adam.state.get(parameter, {})
    }


def take_adam(
    network: nn.Module,
    adam: torch.optim.AdamW,
    moments: Mapping[str, TensorSource],
    steps: Mapping[str, int],
    read: Callable[[TensorSource, str, Tensor], Tensor],
) -> None:
    """Give AdamW the moments of the parameters that have some; `read` gives what belongs beside a parameter."""
    state = {
        index: {"step": torch.tensor(float(steps[name]))}
        | {moment: read(source, name, parameter) for moment, source in moments.items()}
        for index, (name, parameter) in enumerate(network.named_parameters())
        if name in steps
    }
    adam.load_state_dict({"state": state, "param_groups": adam.state_dict()["param_groups"]})


def moments_in_memory(state: dict[str, Any], network: nn.Module) -> tuple[dict[str, TensorSource], dict[str, int]]:
    """What `take_moments` takes, from the state that `torch.optim.AdamW` gave of this network."""
    names = [name for name, _ in network.named_parameters()]
    found = {names[index]: moments for index, moments in state["state"].items()}
    sources: dict[str, TensorSource] = {
        moment: InMemory({name: moments[moment] for name, moments in found.items()}) for moment in MOMENTS
    }
    return sources, {name: int(moments["step"]) for name, moments in found.items()}


def take_kept(engine: Engine, network: str, files: PieceFiles, steps: Mapping[str, int]) -> None:
    """Go on from what ranks kept under the name of this network."""
    engine.fill(files.of(network, "weights"))
    engine.take_moments({moment: files.of(network, moment) for moment in MOMENTS}, steps)
