"""Weights on their way between policies: tensors under the names in the model's own Hugging Face file.

The names hide each family's layout, so learner and generator may use different kinds of policy.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from safetensors import safe_open
from torch import Tensor

from scalerl.plain_json import parsed_json

Weights = Mapping[str, Tensor]
"""`{"model.embed_tokens.weight": tensor, ...}`, on any device; shared tensors appear once, as in the file."""
MOST_TENSORS_NAMED = 5
"""Maximum number of tensors named in an error message."""


class FileWeights(Mapping[str, Tensor]):
    """Weights of a model's folder, read one by one and not kept; whoever made or first loaded it has checked it.

    A file is opened for each tensor: if left open, everything read from it would count as this process's memory.
    """

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, Path] = {}
        index = folder / "model.safetensors.index.json"
        if index.exists():
            named = parsed_json(index.read_text())["weight_map"]
            self.files = {name: folder / file for name, file in named.items()}
            return
        for path in sorted(folder.glob("*.safetensors")):
            with safe_open(path, framework="pt") as file:
                self.files |= dict.fromkeys(file.keys(), path)

    def __getitem__(self, name: str) -> Tensor:
        with safe_open(self.files[name], framework="pt") as file:
            return file.get_tensor(name).clone()

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


def refuse_unlike(own: Weights, given: Weights, where: str = "these weights") -> None:
    """Raises ValueError naming the tensors of `given` that are missing, unknown or of another shape than in `own`."""
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
            f"{where}: tensors do not fit this model: "
            + "; ".join(f"{fault}: {some_of(names)}" for fault, names in faults.items() if names)
        )


def refuse_unusable(weights: Weights, where: str) -> None:
    """Raises ValueError naming the tensors with NaN or infinite values."""
    wrong = [name for name, tensor in weights.items() if not _is_finite(tensor)]
    if wrong:
        raise ValueError(f"{where} has NaN or infinite values in {some_of(wrong)}; copy or create the weights again")


def _is_finite(tensor: Tensor) -> bool:
    """True if minimum and maximum are finite, since NaN propagates; many times faster than checking each element."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return True
    return all(bool(one.isfinite()) for one in tensor.aminmax())


def some_of(names: list[str]) -> str:
    """The first few names, and the number of others."""
    more = len(names) - MOST_TENSORS_NAMED
    return ", ".join(names[:MOST_TENSORS_NAMED]) + (f" and {more} more" if more > 0 else "")
