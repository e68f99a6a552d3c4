"""The engine of one process: PyTorch's AdamW without sharding."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from scalerl.learner.engine import Engine, adam_steps, adamw, take_adam
from scalerl.learner.pieces import KeptPiece, TensorSource, piece_of_whole, weights_of
from scalerl.learner.ranks import ALONE, Ranks
from scalerl.recipe import Optimiser


class TorchNetwork:
    """A network in this process; on several ranks each has a whole copy, which must be frozen."""

    def __init__(self, network: nn.Module, ranks: Ranks = ALONE) -> None:
        self.network, self.ranks = network, ranks

    def __call__(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
        return self.network(*arguments, **named)

    def whole(self) -> nn.Module:
        """The network itself."""
        return self.network

    def layers(self) -> Iterator[dict[str, Tensor]]:
        """All weights at once, since nothing is gathered."""
        yield {name: tensor.detach() for name, tensor in weights_of(self.network).items()}

    def kept(self) -> Iterator[KeptPiece]:
        """An equal part of each tensor."""
        for name, tensor in weights_of(self.network).items():
            yield piece_of_whole("weights", name, tensor, self.ranks.rank, self.ranks.world)

    @torch.no_grad()
    def fill(self, source: TensorSource) -> None:
        """Copy all tensors from the source."""
        for name, tensor in weights_of(self.network).items():
            tensor.copy_(source.read(name, 0, tensor.numel()).view(tensor.shape))

    def copy_from(self, engine: Engine) -> None:
        """Copy the engine's weights."""
        self.network.load_state_dict(engine.network.state_dict())


class TorchEngine(TorchNetwork):
    """A network and its AdamW, both in this process."""

    def __init__(self, network: nn.Module, optimiser: Optimiser) -> None:
        super().__init__(network)
        self.adam = adamw(network, optimiser)

    def frozen(self, network: nn.Module, source: TensorSource | None = None) -> TorchNetwork:
        """The network itself."""
        return TorchNetwork(network)

    def zero_grad(self) -> None:
        """Clear the gradient."""
        self.adam.zero_grad(set_to_none=True)

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradient of `loss`."""
        loss.backward()

    def gradients(self) -> list[nn.Parameter]:
        """All parameters."""
        return list(self.network.parameters())

    def norm(self, max_norm: float | None) -> float:
        """Norm of the gradient before it is clipped to `max_norm`."""
        most = math.inf if max_norm is None else max_norm
        return float(nn.utils.clip_grad_norm_(self.network.parameters(), most))

    def step(self, rate: float) -> None:
        """Take one AdamW step."""
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()

    def skip(self) -> None:
        """Do nothing: the next step starts by clearing the gradient."""

    def moments(self) -> dict[str, Any]:
        """AdamW's state."""
        return self.adam.state_dict()

    def steps(self) -> dict[str, int]:
        """Number of AdamW steps by parameter name."""
        return adam_steps(self.network, self.adam)

    def take_moments(self, moments: Mapping[str, TensorSource], steps: Mapping[str, int]) -> None:
        """Set all of AdamW's moments."""

        def read(source: TensorSource, name: str, parameter: Tensor) -> Tensor:
            return source.read(name, 0, parameter.numel()).view(parameter.shape)

        take_adam(self.network, self.adam, moments, steps, read)


class TorchEngineMaker:
    """Makes the engines of one process."""

    ranks = ALONE

    def make(self, network: nn.Module, optimiser: Optimiser, source: TensorSource | None = None) -> TorchEngine:
        """Make the engine of a network."""
        return TorchEngine(network, optimiser)
