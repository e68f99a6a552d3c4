"""Weights on their way between policies: tensors under the names of the model's own Hugging Face file.

No family's inner layout shows in them, so a learner and a generator need not hold the same kind of policy.
"""

from collections.abc import Mapping

from torch import Tensor

Weights = Mapping[str, Tensor]
"""`{"model.embed_tokens.weight": tensor, ...}`, on any device; shared tensors once, as in the file."""
MOST_TENSORS_NAMED = 5
"""Tensors that an error message names."""


def refuse_unlike(own: Weights, given: Weights, where: str = "these weights") -> None:
    """Raises ValueError, naming them, where tensors of `own` are missing in `given`, are unknown there, or have another
    shape."""
    faults = {
        "missing": sorted(own.keys() - given.keys()),
        "unexpected": sorted(given.keys() - own.keys()),
        "of another shape": [
            f"{name} ({list(given[name].shape)} instead of {list(own[name].shape)})"
            for name in sorted(own.keys() & given.keys())
            if given[name].shape != own[name].shape
        ],
    }
    if any(faults.values()):
        raise ValueError(
            f"{where} are of another model: "
            + "; ".join(f"{fault}: {some_of(names)}" for fault, names in faults.items() if names)
        )


def refuse_unusable(weights: Weights, where: str) -> None:
    """Raises ValueError, naming them, where tensors hold NaN or infinities."""
    wrong = [name for name, tensor in weights.items() if not _is_finite(tensor)]
    if wrong:
        raise ValueError(f"{where} has NaN or infinite numbers in {some_of(wrong)}; copy or make the weights again")


def _is_finite(tensor: Tensor) -> bool:
    """By the smallest and the largest element, which are NaN where any is: many times faster than asking each."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return True
    return all(bool(one.isfinite()) for one in tensor.aminmax())


def some_of(names: list[str]) -> str:
    """The first few of them, and how many more there are."""
    more = len(names) - MOST_TENSORS_NAMED
    return ", ".join(names[:MOST_TENSORS_NAMED]) + (f" and {more} more" if more > 0 else "")
