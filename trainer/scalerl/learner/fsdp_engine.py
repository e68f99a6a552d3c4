"""PyTorch's own sharding (FSDP2, `fully_shard`), which gathers each layer's weights for forward and backward."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor

from scalerl.learner.engine import AdamSteps, ShardedNetwork, adamw
from scalerl.learner.ranks import Ranks
from scalerl.learner.saved_pieces import MOMENTS, KeptPiece, TensorSource, by_layer, kept_buffers
from scalerl.model.outline import outline_of
from scalerl.recipe import Optimiser


class FsdpNetwork(ShardedNetwork):
    """A network sharded over the ranks of one process group, which must have been joined."""

    def __init__(self, network: nn.Module, source: TensorSource | None, *, ranks: Ranks, mesh: DeviceMesh) -> None:
        self.ranks, self.mesh, self.device = ranks, mesh, torch.device(mesh.device_type)
        self.network = outline_of(network)
        for layers in (module for module in self.network.modules() if isinstance(module, nn.ModuleList)):
            for layer in layers:
                fully_shard(layer, mesh=mesh)
        fully_shard(self.network, mesh=mesh, reshard_after_forward=True)
        for module in self.network.modules():
            if isinstance(module, FSDPModule):
                # Sum instead of average times ranks: a factor that is not a power of 2 would round in BF16.
                module.set_force_sum_reduction_for_comms(True)
                module.set_gradient_divide_factor(1.0)
        self._make_room()
        assert source is not None, "ranks read their shares from the model's folder"
        self.fill(source, with_fixed=True)

    @torch.no_grad()
    def _make_room(self) -> None:
        room: dict[str, Tensor] = {}
        by_identity: dict[int, nn.Parameter] = {}
        for name, parameter in self.network.named_parameters(remove_duplicate=False):
            if id(parameter) not in by_identity:
                start, stop = self._span(parameter)
                shape = (stop - start) // max(1, parameter.shape[1:].numel()), *parameter.shape[1:]
                values = torch.zeros(shape, dtype=parameter.dtype, device=self.device)
                own = nn.Parameter(sharded_as(parameter, values), requires_grad=parameter.requires_grad)
                by_identity[id(parameter)] = own
            room[name] = by_identity[id(parameter)]
        self.network.load_state_dict(room, strict=False, assign=True)

    def _span(self, parameter: Tensor) -> tuple[int, int]:
        """Start and stop of this rank's elements of a parameter, in whole rows."""
        rows, width = parameter.shape[0], parameter.shape[1:].numel()
        each = -(-rows // self.ranks.world)
        return (min(rows, each * self.ranks.rank) * width, min(rows, each * (self.ranks.rank + 1)) * width)

    def own_elements(self, parameter: Tensor) -> tuple[int, Tensor]:
        return self._span(parameter)[0], local(parameter).view(-1)

    @torch.no_grad()
    def layers(self) -> Iterator[dict[str, Tensor]]:
        for layer in by_layer(self.network):
            yield {name: full(parameter.detach()) for name, parameter in layer}
        yield dict(kept_buffers(self.network))


class FsdpEngine(FsdpNetwork, AdamSteps):
    """A network and its AdamW, both sharded."""

    def __init__(
        self,
        network: nn.Module,
        optimiser: Optimiser,
        source: TensorSource | None,
        *,
        ranks: Ranks,
        mesh: DeviceMesh,
    ) -> None:
        super().__init__(network, source, ranks=ranks, mesh=mesh)
        self.adam = adamw(self.network, optimiser)

    def frozen(self, network: nn.Module, source: TensorSource | None = None) -> FsdpNetwork:
        return FsdpNetwork(network, source, ranks=self.ranks, mesh=self.mesh)

    def norm(self, max_norm: float | None) -> float:
        return float(full(self.clip(max_norm)))

    def kept(self) -> Iterator[KeptPiece]:
        yield from super().kept()
        for name, parameter in self.network.named_parameters():
            state = self.adam.state.get(parameter, {})
            for moment in MOMENTS if state else ():
                start, _ = self._span(parameter)
                yield KeptPiece(kind=moment, name=name, start=start, values=local(state[moment]).reshape(-1))

    def own_part(self, source: TensorSource, name: str, parameter: Tensor) -> Tensor:
        own = local(parameter)
        values = source.read(name, *self._span(parameter)).view(own.shape)
        return sharded_as(parameter, values.to(own.device, own.dtype, copy=True))


def full(tensor: Tensor) -> Tensor:
    """The whole tensor; collective if it is sharded."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def local(tensor: Tensor) -> Tensor:
    """This rank's part of a sharded tensor."""
    assert isinstance(tensor, DTensor)
    return tensor.to_local()


def sharded_as(parameter: Tensor, own: Tensor) -> DTensor:
    """This rank's part as a tensor sharded like the parameter."""
    assert isinstance(parameter, DTensor)
    return DTensor.from_local(
        own,
        parameter.device_mesh,
        parameter.placements,
        run_check=False,
        shape=parameter.shape,
        stride=parameter.stride(),
    )
