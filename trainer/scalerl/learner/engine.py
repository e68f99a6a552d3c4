"""Engines hold a network and its optimiser, in one process or sharded over several.

The learner (`torch_learner`, `critic`) is the algorithm and knows nothing of shards; an engine knows nothing of
algorithms. A network is
called through its `forward`, where engines install hooks, and returns a tuple: hooks find tensors in tuples but not in
dataclasses.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from scalerl.learner.adamw import AdamW
from scalerl.learner.ranks import Ranks
from scalerl.learner.saved_pieces import (
    MOMENTS,
    InMemory,
    KeptPiece,
    PieceFiles,
    TensorSource,
    fill_whole,
    kept_buffers,
    parameters_by_name,
    pieces_of_whole,
)
from scalerl.model.outline import PolicyParts
from scalerl.model.policy import Policy, Scores
from scalerl.recipe import Optimiser
from scalerl.weights.hugging_face import Weights


class Network(Protocol):
    """A network on all of its ranks. Every method is collective: all ranks call it in the same order."""

    network: nn.Module
    """The modules; only the engine knows where their parameters are."""

    def __call__(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
        """Output of the network's `forward`; without a gradient unless this is an engine."""
        return self.network(*arguments, **named)

    def layers(self) -> Iterator[dict[str, Tensor]]:
        """All current weights by name, one layer at a time; each layer may be freed when the next one comes.

        Weights that training never changes are left out, as in `kept`."""
        ...

    def kept(self) -> Iterator[KeptPiece]:
        """This rank's part, with an engine's moments; all parts together cover everything once. Gathers nothing."""
        ...

    def fill(self, source: TensorSource, *, with_fixed: bool = False) -> None:
        """Set the weights; every rank reads its part. Weights that training never changes are set only `with_fixed`."""

    def copy_from(self, engine: "Engine") -> None:
        """Copy the current weights of an engine that trains a network like this one."""


class Engine(Network, Protocol):
    """A network, its AdamW, and the ranks that hold them.

    One step: `zero_grad`, then `backward` of each pass, `norm`, and either `step` or `skip`.
    """

    ranks: Ranks

    def frozen(self, network: nn.Module, source: TensorSource | None = None) -> Network:
        """A network of the same kind without an optimiser, sharded like this one; arguments as for `EngineMaker`."""
        ...

    def zero_grad(self) -> None:
        """Clear the gradient."""

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradient of `loss`, summed over ranks, never averaged; `last` marks this rank's last pass."""

    def gradients(self) -> list[nn.Parameter]:
        """Parameters whose `grad` may be divided before `norm`; empty for an engine that rejects FP16."""
        return []

    def norm(self, max_norm: float | None) -> float:
        """Norm of the whole gradient before it is clipped to `max_norm`; may be NaN or infinite."""
        ...

    def step(self, rate: float) -> None:
        """Take one AdamW step at this learning rate; the gradient must be finite."""

    def skip(self) -> None:
        """Clear the gradient; weights and moments stay unchanged."""

    def update_size(self) -> float | None:
        """The last step's update over the weights, |dw| / |w|; None for an engine that does not measure it."""
        return None

    def moments(self) -> dict[str, Any] | None:
        """AdamW's state as `torch.optim.AdamW.state_dict` returns it; None if `kept` has it in pieces."""
        return None

    def steps(self) -> dict[str, int]:
        """Number of AdamW steps by parameter name, without parameters that never had a gradient."""
        ...

    def take_moments(self, moments: Mapping[str, TensorSource], steps: Mapping[str, int]) -> None:
        """Set AdamW's moments by name, and the step counts that `steps` returned with them."""


class ShardedNetwork(Network, ABC):
    """A network whose parameters are split over the ranks."""

    ranks: Ranks

    @abstractmethod
    def own_elements(self, parameter: Tensor) -> tuple[int, Tensor]:
        """Start of this rank's elements in the flattened parameter, and the elements in their own memory, [n]."""

    @torch.no_grad()
    def kept(self) -> Iterator[KeptPiece]:
        for name, parameter in parameters_by_name(self.network):
            start, values = self.own_elements(parameter)
            yield KeptPiece(kind="weights", name=name, start=start, values=values)
        yield from pieces_of_whole(kept_buffers(self.network), self.ranks)

    @torch.no_grad()
    def fill(self, source: TensorSource, *, with_fixed: bool = False) -> None:
        for name, parameter in parameters_by_name(self.network, with_fixed=with_fixed):
            start, values = self.own_elements(parameter)
            values.copy_(source.read(name, start, start + values.numel()))
        fill_whole(kept_buffers(self.network, with_fixed=with_fixed), source)

    @torch.no_grad()
    def copy_from(self, engine: Engine) -> None:
        assert isinstance(engine, ShardedNetwork)
        for own, theirs in zip(self.network.parameters(), engine.network.parameters(), strict=True):
            self.own_elements(own)[1].copy_(engine.own_elements(theirs)[1])


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
    """A network of a `Scorer` with the interface of a policy."""

    def __init__(self, network: Network) -> None:
        self.network = network

    @property
    def policy(self) -> Policy:
        """The policy's modules, wherever its weights are."""
        scorer = self.network.network
        assert isinstance(scorer.policy, Policy)
        return scorer.policy

    def exported_layers(self) -> Iterator[Weights]:
        """Weights under the names in the file, one layer at a time."""
        for layer in self.network.layers():
            yield self.policy.exported_part({name.removeprefix(POLICY): tensor for name, tensor in layer.items()})

    def take(self, weights: Weights) -> None:
        """Continue with weights under the names in the file."""
        self.network.fill(PolicyParts(self.policy, weights, POLICY))

    def score(self, *arguments: Any, **named: Any) -> Scores:
        """Scores of tokens; arguments as for `Policy.score`."""
        logprobs_BT, entropy_BT, balance_B = self.network(*arguments, **named)
        return Scores(logprobs_BT=logprobs_BT, entropy_BT=entropy_BT, balance_B=balance_B)


Scoring = Policy | ScoringNetwork
"""Anything that scores tokens: a policy, or a policy's network on its ranks."""


EngineMaker = Callable[[nn.Module, Optimiser, TensorSource | None], Engine]
"""Makes the engines of a run: one for the policy, one for a critic; collective. Sharded engines take an outline, and
read its weights from the source."""

POLICY = "policy."
"""Prefix of a policy's own names in a `Scorer`."""


def trained_parameters(network: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Parameters with a gradient, by name, in the order in which AdamW numbers them."""
    return [(name, parameter) for name, parameter in network.named_parameters() if parameter.requires_grad]


def adamw(network: nn.Module, optimiser: Optimiser) -> torch.optim.AdamW:
    """AdamW with the recipe's settings."""
    return AdamW(
        [parameter for _, parameter in trained_parameters(network)],
        lr=optimiser.learning_rate,
        betas=(optimiser.beta1, optimiser.beta2),
        eps=optimiser.eps,
        weight_decay=optimiser.weight_decay,
        fused=True,
    )


class AdamSteps(Engine, ABC):
    """The steps of an engine whose parameters PyTorch's own AdamW updates."""

    adam: torch.optim.AdamW

    @abstractmethod
    def own_part(self, source: TensorSource, name: str, parameter: Tensor) -> Tensor:
        """The part of a tensor that this rank holds, laid out like `parameter`."""

    def zero_grad(self) -> None:
        self.adam.zero_grad(set_to_none=True)

    def backward(self, loss: Tensor, *, last: bool) -> None:
        loss.backward()

    def clip(self, max_norm: float | None) -> Tensor:
        """Scale the gradient down to `max_norm`; returns its norm before."""
        return nn.utils.clip_grad_norm_(self.network.parameters(), math.inf if max_norm is None else max_norm)

    def step(self, rate: float) -> None:
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()

    def skip(self) -> None:
        self.zero_grad()

    def steps(self) -> dict[str, int]:
        return {
            name: int(self.adam.state[parameter]["step"])
            for name, parameter in trained_parameters(self.network)
            if "step" in self.adam.state.get(parameter, {})
        }

    def take_moments(self, moments: Mapping[str, TensorSource], steps: Mapping[str, int]) -> None:
        state = {
            index: {"step": torch.tensor(float(steps[name]))}
            | {moment: self.own_part(source, name, parameter) for moment, source in moments.items()}
            for index, (name, parameter) in enumerate(trained_parameters(self.network))
            if name in steps
        }
        self.adam.load_state_dict({"state": state, "param_groups": self.adam.state_dict()["param_groups"]})


def moments_in_memory(state: dict[str, Any], network: nn.Module) -> tuple[dict[str, TensorSource], dict[str, int]]:
    """Arguments of `take_moments`, from a `torch.optim.AdamW` state of this network."""
    names = [name for name, _ in trained_parameters(network)]
    found = {names[index]: moments for index, moments in state["state"].items()}
    sources: dict[str, TensorSource] = {
        moment: InMemory({name: moments[moment] for name, moments in found.items()}) for moment in MOMENTS
    }
    return sources, {name: int(moments["step"]) for name, moments in found.items()}


def take_kept(engine: Engine, network: str, files: PieceFiles, steps: Mapping[str, int]) -> None:
    """Continue from the pieces that ranks kept under this network's name."""
    engine.fill(files.of(network, "weights"))
    engine.take_moments({moment: files.of(network, moment) for moment in MOMENTS}, steps)
