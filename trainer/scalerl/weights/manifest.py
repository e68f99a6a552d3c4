"""Checks that a publication has the expected tensors, undamaged.

The checksum is CRC-32, which detects damage by disks, networks and killed processes at the speed of memory. Nobody
forges weights between a learner and its generators.
"""

import zlib
from collections.abc import Mapping

import torch
from torch import Tensor

from scalerl.weights.hugging_face import Weights, refuse_unlike, refuse_unusable, some_of
from scalerl.weights.store import UnusablePublication


def forms_of(weights: Weights) -> dict[str, Tensor]:
    """Tensors without memory, which have the type and shape that every publication of these weights must have."""
    return {name: torch.empty_like(tensor, device="meta") for name, tensor in weights.items()}


def checksum(tensor: Tensor) -> int:
    """CRC-32 of the bytes of a contiguous CPU tensor."""
    return zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data)


def refuse_other_version(publication: int, found: int, asked: int) -> None:
    """Raises UnusablePublication if a publication is not the version that its reader asked for."""
    if found != asked:
        raise UnusablePublication(f"publication {publication} holds version {found} of the weights, not {asked}")


def refuse_damaged(publication: int, weights: Weights, forms: Weights, checksums: Mapping[str, int]) -> None:
    """Raises UnusablePublication naming tensors that are missing, damaged or unusable."""
    where = f"publication {publication}"
    try:
        refuse_unlike(forms, weights, where)
        faults = {
            "of another type": (
                f"{name} ({weights[name].dtype} instead of {form.dtype})"
                for name, form in forms.items()
                if weights[name].dtype != form.dtype
            ),
            "damaged (checksum mismatch)": (name for name in forms if checksum(weights[name]) != checksums[name]),
        }
        for fault, names in faults.items():
            if wrong := list(names):
                raise ValueError(f"tensors of {where} are {fault}: {some_of(wrong)}")
        refuse_unusable(weights, where)
    except ValueError as error:
        raise UnusablePublication(str(error)) from None
