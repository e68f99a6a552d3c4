"""The engine of one process: PyTorch's AdamW, nothing sharded."""

import math
from typing import Any

from torch import Tensor, nn

from scalerl.learner.engine import Engine, adamw
from scalerl.learner.ranks import ALONE
from scalerl.recipe import Optimiser


class TorchNetwork:
    """A network that lies in this process."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network

    def __call__(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
        """What its `forward` says."""
        return self.network(*arguments, **named)

    def whole(self) -> nn.Module:
        """The network itself."""
        return self.network

    def take(self) -> None:
        """Nothing to do: what `whole` gave is the network."""

    def copy_from(self, engine: Engine) -> None:
        """Copy the weights."""
        self.network.load_state_dict(engine.whole().state_dict())


class TorchEngine(TorchNetwork):
    """A network and its AdamW, both in this process."""

    ranks = ALONE

    def __init__(self, network: nn.Module, optimiser: Optimiser) -> None:
        super().__init__(network)
        self.adam = adamw(network, optimiser)

    def frozen(self, network: nn.Module) -> TorchNetwork:
        """It stays where it is."""
        return TorchNetwork(network)

    def zero_grad(self) -> None:
        """Forget the gradient."""
        self.adam.zero_grad(set_to_none=True)

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradient to the parameters'."""
        loss.backward()

    def gradients(self) -> list[nn.Parameter]:
        """All parameters."""
        return list(self.network.parameters())

    def norm(self, max_norm: float | None) -> float:
        """The norm, then scaled down to `max_norm`."""
        most = math.inf if max_norm is None else max_norm
        return float(nn.utils.clip_grad_norm_(self.network.parameters(), most))

    def step(self, rate: float) -> None:
        """One step of AdamW."""
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()

    def skip(self) -> None:
        """Nothing to do: the next step begins by forgetting the gradient."""

    def moments(self) -> dict[str, Any]:
        """AdamW's state."""
        return self.adam.state_dict()

    def take_moments(self, state: dict[str, Any]) -> None:
        """Go on from it."""
        self.adam.load_state_dict(state)


class TorchEngineMaker:
    """EngineMaker of one process."""

    ranks = ALONE

    def make(self, network: nn.Module, optimiser: Optimiser) -> TorchEngine:
        """An engine of this process."""
        return TorchEngine(network, optimiser)
