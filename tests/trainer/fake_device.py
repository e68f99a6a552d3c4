"""A device on a CPU build: tensors that hold numbers on the host, say that they lie on `fakegpu`, and meet no others.

What is computed on it is computed by the CPU, so a step can be compared with one on the CPU to the bit. Like a GPU it
refuses to mix its tensors with the host's. Unlike one it also says where the host waited for it, and it has no random
numbers. The registration is private to PyTorch, so it stays in tests.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

NAME = "fakegpu"
Module = TypeVar("Module", bound=torch.nn.Module)


class _Backend(_DummyBackendModule):
    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


_setup_privateuseone_for_python_backend(NAME, backend_module=_Backend())
# Under autocast its products stay as they are: what is rounded is not what this device is for.
AUTOCAST = torch.library.Library("_", "IMPL")
AUTOCAST.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
DEVICE = torch.device(NAME, 0)
HOST = torch.device("cpu")
aten = torch.ops.aten
WAITS = {
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten.equal.default,
    aten.bincount.default,
    aten.repeat_interleave.Tensor,
    aten._unique2.default,
}
"""What makes a host wait for its GPU, because the result or its shape is needed there."""


class OnDevice(torch.Tensor):
    """A tensor that says it lies on the device; `raw` has its numbers."""

    raw: torch.Tensor

    @staticmethod
    def __new__(cls, raw: torch.Tensor, requires_grad: bool = False) -> "OnDevice":
        made = torch.Tensor._make_wrapper_subclass(
            cls, raw.shape, strides=raw.stride(), storage_offset=raw.storage_offset(), dtype=raw.dtype, device=DEVICE
        )
        made.raw = raw.detach().resolve_conj().resolve_neg()  # bits that the wrapper would not have
        return made.requires_grad_(requires_grad)

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return execute(function, args, kwargs or {}, waits=[])

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        copied = OnDevice(self.raw.clone(), self.requires_grad)
        return torch.nn.Parameter(copied, self.requires_grad) if isinstance(self, torch.nn.Parameter) else copied


def execute(function: Any, args: Any, kwargs: dict[str, Any], waits: list[str]) -> Any:
    """Run one operation on the host, its results wherever a GPU would have them; what the host waits for is noted."""
    found: list[torch.Tensor] = []
    tree_map_only(torch.Tensor, found.append, (args, kwargs))
    there = [one for one in found if isinstance(one, OnDevice)]
    moves = function in (aten._to_copy.default, aten.copy_.default)
    asked = kwargs.get("device")
    if there and not moves and any(not isinstance(one, OnDevice) and one.dim() for one in found):
        raise RuntimeError(f"{function}: tensors of {NAME} and of the host meet")
    if torch.Tag.nondeterministic_seeded in function.tags and (
        there or (asked is not None and torch.device(asked).type == NAME)
    ):
        raise RuntimeError(f"{function}: random numbers of the device")
    if there and (function in WAITS or is_boolean_index(function, args) or leaves_device(function, args, asked)):
        waits.append(place())
    raw = [tree_map_only(OnDevice, lambda one: one.raw, part) for part in (args, kwargs)]
    goes_there = asked is not None and torch.device(asked).type == NAME
    if asked is not None and goes_there:
        raw[1]["device"] = HOST
    result = function(*raw[0], **raw[1])
    if moves and function is aten.copy_.default:
        return args[0]
    stays = goes_there or (bool(there) and asked is None)
    if not stays:
        return result
    # What an operation changes in place, or hands back as it got it, stays the same tensor.
    known = {id(one.raw): one for one in there}
    return tree_map_only(torch.Tensor, lambda one: known[id(one)] if id(one) in known else OnDevice(one), result)


def is_boolean_index(function: Any, args: Any) -> bool:
    """Whether the shape of the result hangs on the numbers of a mask."""
    indices = args[1] if function in (aten.index.Tensor, aten.index_put.default, aten.index_put_.default) else ()
    return any(one is not None and one.dtype == torch.bool for one in indices)


def leaves_device(function: Any, args: Any, asked: Any) -> bool:
    """Whether numbers are copied from the device to the host."""
    if function is aten.copy_.default:
        return isinstance(args[1], OnDevice) and not isinstance(args[0], OnDevice)
    return function is aten._to_copy.default and asked is not None and torch.device(asked).type == "cpu"


def place() -> str:
    """The function of this package that asked, `batch_loss.on_the_host`."""
    frames = [frame for frame in traceback.extract_stack() if "/trainer/scalerl/" in frame.filename]
    return f"{frames[-1].filename.rsplit('/', 1)[1].removesuffix('.py')}.{frames[-1].name}" if frames else "a test"


class _Device(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return execute(function, args, kwargs or {}, self.waits)


@contextmanager
def fake_device() -> Iterator[list[str]]:
    """Inside, the device exists; the list says where the host has waited for it."""
    with _Device() as mode:
        yield mode.waits


def on_device(module: Module) -> Module:
    """The module with its parameters and buffers moved there."""
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                moved = OnDevice(parameter.detach().clone())
                part._parameters[name] = torch.nn.Parameter(moved, parameter.requires_grad)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = OnDevice(buffer.clone())
    return module
