"""The device a run computes on: the recipe's `device`, or the one found."""

import torch

from scalerl.errors import Rejected
from scalerl.recipe import ResolvedRecipe


def device_of(recipe: ResolvedRecipe) -> torch.device:
    """The recipe's device; by default CUDA if PyTorch sees a GPU, else the CPU.

    Raises Rejected if the recipe asks for a GPU and there is none.
    """
    found = torch.cuda.is_available()
    if recipe.device == "cuda" and not found:
        raise Rejected(
            f"device: cuda, but PyTorch {torch.__version__} sees no GPU on this machine; write device: cpu, or omit "
            f"device to use what is found"
        )
    return torch.device(recipe.device or ("cuda" if found else "cpu"))


def deterministic_on_cpu(device: torch.device) -> None:
    """Make results bit-identical on a CPU; some GPU operations have no deterministic form.

    `torch.use_deterministic_algorithms` does the same and imports PyTorch's compiler for it, which takes a second.
    """
    torch.set_deterministic_debug_mode("error" if device.type == "cpu" else "default")


def device_text(device: torch.device) -> str:
    """Device name, such as `cpu` or `cuda (NVIDIA H100 80GB HBM3)`."""
    return f"cuda ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else device.type
