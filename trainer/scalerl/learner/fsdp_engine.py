"""PyTorch's own sharding (FSDP2, `fully_shard`): each layer's weights are gathered for its forward and its backward."""

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from scalerl.learner.engine import Engine, adamw
from scalerl.learner.ranks import Ranks
from scalerl.recipe import Optimiser


class FsdpEngineMaker:
    """Engines over the ranks of one process group, which must have been joined."""

    def __init__(self, ranks: Ranks, device: torch.device) -> None:
        self.ranks, self.mesh = ranks, init_device_mesh(device.type, (ranks.world,))

    def make(self, network: nn.Module, optimiser: Optimiser) -> "FsdpEngine":
        """Collective."""
        return FsdpEngine(network, optimiser, ranks=self.ranks, mesh=self.mesh)


class FsdpNetwork:
    """A network in shards; a copy in this process holds all of its weights when it is asked for."""

    def __init__(self, network: nn.Module, mesh: DeviceMesh) -> None:
        self.mesh, self._whole, self.network = mesh, network, copy.deepcopy(network)
        for layers in (module for module in self.network.modules() if isinstance(module, nn.ModuleList)):
            for layer in layers:
                fully_shard(layer, mesh=mesh)
        fully_shard(self.network, mesh=mesh, reshard_after_forward=True)
        for module in self.network.modules():
            if isinstance(module, FSDPModule):
                # The sum itself, not an average times the ranks: another factor than a power of 2 rounds in BF16.
                module.set_force_sum_reduction_for_comms(True)
                module.set_gradient_divide_factor(1.0)

    def __call__(self, *arguments: Any, **named: Any) -> tuple[Any, ...]:
        """What its `forward` says."""
        return self.network(*arguments, **named)

    @torch.no_grad()
    def whole(self) -> nn.Module:
        """All of its present weights, one parameter at a time, in the network that it was made from."""
        for place, parameter in zip(self._whole.parameters(), self.network.parameters(), strict=True):
            place.copy_(full(parameter))
        return self._whole

    @torch.no_grad()
    def take(self) -> None:
        """Every rank keeps its share."""
        for place, parameter in zip(self._whole.parameters(), self.network.parameters(), strict=True):
            local(parameter).copy_(shard_like(parameter, place.detach()))

    @torch.no_grad()
    def copy_from(self, engine: Engine) -> None:
        """Every rank copies its own share."""
        assert isinstance(engine, FsdpEngine)
        for own, theirs in zip(self.network.parameters(), engine.network.parameters(), strict=True):
            local(own).copy_(local(theirs))


class FsdpEngine(FsdpNetwork):
    """A network and its AdamW, both in shards."""

    def __init__(self, network: nn.Module, optimiser: Optimiser, *, ranks: Ranks, mesh: DeviceMesh) -> None:
        super().__init__(network, mesh)
        self.ranks = ranks
        self.adam = adamw(self.network, optimiser)

    def frozen(self, network: nn.Module) -> FsdpNetwork:
        """In shards as well."""
        return FsdpNetwork(network, self.mesh)

    def zero_grad(self) -> None:
        """Forget the gradient."""
        self.adam.zero_grad(set_to_none=True)

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradient."""
        loss.backward()

    def gradients(self) -> list[nn.Parameter]:
        """None: FP16 is refused."""
        return []

    def norm(self, max_norm: float | None) -> float:
        """The norm, then scaled down to `max_norm`."""
        most = math.inf if max_norm is None else max_norm
        return float(full(nn.utils.clip_grad_norm_(self.network.parameters(), most)))

    def step(self, rate: float) -> None:
        """One step of AdamW on every share."""
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()

    def skip(self) -> None:
        """Nothing to do: the next step begins by forgetting the gradient."""

    def moments(self) -> dict[str, Any]:
        """AdamW's state of the whole network on the host, one parameter at a time."""
        state = self.adam.state_dict()
        whole = {
            index: {name: full(value).cpu().clone() for name, value in moments.items()}
            for index, moments in state["state"].items()
        }
        return {"state": whole, "param_groups": state["param_groups"]}

    def take_moments(self, state: dict[str, Any]) -> None:
        """Every rank keeps its share."""
        parameters = list(self.network.parameters())
        own = {
            index: {
                name: value.clone() if name == "step" else sharded(parameters[index], value)
                for name, value in moments.items()
            }
            for index, moments in state["state"].items()
        }
        self.adam.load_state_dict({"state": own, "param_groups": state["param_groups"]})


def full(tensor: Tensor) -> Tensor:
    """All of a tensor; collective where it is shared out."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def local(parameter: Tensor) -> Tensor:
    """This rank's part."""
    assert isinstance(parameter, DTensor)
    return parameter.to_local()


def sharded(parameter: Tensor, value: Tensor) -> DTensor:
    """A whole tensor shared out as the parameter is."""
    assert isinstance(parameter, DTensor)
    return distribute_tensor(value.to(parameter.device), parameter.device_mesh, parameter.placements)


def shard_like(parameter: Tensor, value: Tensor) -> Tensor:
    """This rank's part of a whole tensor."""
    return local(sharded(parameter, value))
