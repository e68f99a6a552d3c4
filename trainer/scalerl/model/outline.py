"""Networks with shapes but no memory, whose weights are read part by part.

Parameters are on PyTorch's device `meta`. An engine that shards a network shards its outline first and then reads only
what it keeps, so no process ever holds the weights of all layers. Buffers are small and keep their values.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from scalerl.model.policy import Policy
from scalerl.weights.hugging_face import Weights


def outline_of(network: nn.Module) -> nn.Module:
    """A copy whose parameters have shapes only; shared parameters stay shared."""
    shapes = {
        id(parameter): nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=parameter.requires_grad)
        for parameter in network.parameters()
    }
    return copy.deepcopy(network, memo=dict(shapes))


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Context in which new modules get parameters without memory; buffers are unaffected."""
    register = nn.Module.register_parameter

    def registered(self: nn.Module, name: str, param: nn.Parameter | None) -> None:
        if param is not None and not param.is_meta:
            param = nn.Parameter(param.to("meta"), requires_grad=param.requires_grad)
        register(self, name, param)

    nn.Module.register_parameter = registered
    try:
        yield
    finally:
        nn.Module.register_parameter = register


def set_parameters(network: nn.Module, values: dict[str, nn.Parameter]) -> None:
    """Replace parameters by name, wherever they are shared."""
    others = dict(network.named_parameters())
    by_identity = {id(others[name]): value for name, value in values.items()}
    for module in network.modules():
        for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            if id(parameter) in by_identity:
                setattr(module, name, by_identity[id(parameter)])


class PolicyParts:
    """A policy's own tensors under its own prefixed names, read from its file's weights; one is in memory at a time.

    A source of `scalerl.learner.saved_pieces`.
    """

    def __init__(self, policy: Policy, weights: Weights, prefix: str) -> None:
        self.prefix = prefix
        self._imported = policy.importer(weights)
        self._last: tuple[str, Tensor] | None = None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.startswith(self.prefix)

    def read(self, name: str, start: int, stop: int) -> Tensor:
        if self._last is None or self._last[0] != name:
            self._last = None
            self._last = name, self._imported(name.removeprefix(self.prefix)).detach().reshape(-1)
        return self._last[1][start:stop]
