"""The engine of one process: PyTorch's AdamW without sharding."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from scalerl.learner.engine import AdamSteps, Engine, Network, adamw
from scalerl.learner.ranks import ALONE, Ranks
from scalerl.learner.saved_pieces import KeptPiece, TensorSource, fill_whole, pieces_of_whole, weights_of
from scalerl.learner.update_size import update_size
from scalerl.recipe import Optimiser


class TorchNetwork(Network):
    """A network in this process; on several ranks each has a whole copy, which must be frozen."""

    def __init__(self, network: nn.Module, ranks: Ranks = ALONE) -> None:
        self.network, self.ranks = network, ranks

    def layers(self) -> Iterator[dict[str, Tensor]]:
        """All weights that training changes at once, since nothing is gathered."""
        yield {name: tensor.detach() for name, tensor in weights_of(self.network).items()}

    def kept(self) -> Iterator[KeptPiece]:
        """An equal part of each tensor."""
        return pieces_of_whole(weights_of(self.network).items(), self.ranks)

    @torch.no_grad()
    def fill(self, source: TensorSource, *, with_fixed: bool = False) -> None:
        fill_whole(weights_of(self.network, with_fixed=with_fixed).items(), source)

    def copy_from(self, engine: Engine) -> None:
        self.network.load_state_dict(engine.network.state_dict())


class TorchEngine(TorchNetwork, AdamSteps):
    """A network and its AdamW, both in this process; weights need no source."""

    def __init__(self, network: nn.Module, optimiser: Optimiser, source: TensorSource | None = None) -> None:
        super().__init__(network)
        self.adam = adamw(network, optimiser)

    def frozen(self, network: nn.Module, source: TensorSource | None = None) -> TorchNetwork:
        """The network itself."""
        return TorchNetwork(network)

    def gradients(self) -> list[nn.Parameter]:
        return list(self.network.parameters())

    def norm(self, max_norm: float | None) -> float:
        return float(self.clip(max_norm))

    def update_size(self) -> float | None:
        return update_size(self.adam)

    def moments(self) -> dict[str, Any]:
        return self.adam.state_dict()

    def own_part(self, source: TensorSource, name: str, parameter: Tensor) -> Tensor:
        return source.read(name, 0, parameter.numel()).view(parameter.shape)
