"""Networks without memory: modules whose parameters have shapes alone, and the weights that they get part by part.

PyTorch's device `meta` has the shapes. Whoever shards a network cuts its outline, and then reads what it keeps: so no
process ever holds the weights of all layers. Buffers are no part of this: they are small, and they have their numbers.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from scalerl.model.policy import Policy
from scalerl.weights.hugging_face import Weights


def is_outline(network: nn.Module) -> bool:
    """Whether its parameters have shapes alone."""
    return any(parameter.is_meta for parameter in network.parameters())


def outline_of(network: nn.Module) -> nn.Module:
    """A copy with shapes for parameters; what was shared stays so."""
    shapes = {
        id(parameter): nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=parameter.requires_grad)
        for parameter in network.parameters()
    }
    return copy.deepcopy(network, memo=dict(shapes))


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Modules made in the block have no memory for their parameters; buffers are as ever."""
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
    """Put parameters, by name, in the place of others, wherever those are shared."""
    others = dict(network.named_parameters())
    by_identity = {id(others[name]): value for name, value in values.items()}
    for module in network.modules():
        for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            if id(parameter) in by_identity:
                setattr(module, name, by_identity[id(parameter)])


class PolicyParts:
    """A policy's own tensors, by its own names behind a prefix, from the weights of its file: one at a time is there.

    A source of `scalerl.learner.pieces`.
    """

    def __init__(self, policy: Policy, weights: Weights, prefix: str) -> None:
        self.prefix = prefix
        self._imported = policy.importer(weights)
        self._last: tuple[str, Tensor] | None = None

    def __contains__(self, name: object) -> bool:
        """It has all."""
        return isinstance(name, str) and name.startswith(self.prefix)

    def read(self, name: str, start: int, stop: int) -> Tensor:
        """Numbers `start` to `stop` of the tensor in the order of its memory."""
        if self._last is None or self._last[0] != name:
            self._last = None
            self._last = name, self._imported(name.removeprefix(self.prefix)).detach().reshape(-1)
        return self._last[1][start:stop]
