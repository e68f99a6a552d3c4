"""Libraries that only some logs need."""

from importlib import import_module
from typing import Any

from ablations.errors import AblationsError


def extra(module: str, *, package: str, reads: str) -> Any:
    """The module; raises AblationsError with the pip command if its package is not installed, or does not start."""
    try:
        return import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name and module.startswith(error.name):
            why = "which is not installed"
        else:
            why = f"which cannot be imported ({error})"
        raise AblationsError(
            f"{reads} is read with the library {package}, {why}; run `pip install {package}`"
        ) from error
