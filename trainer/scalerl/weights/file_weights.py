"""Weights of a model's folder, each read on demand and not kept."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from safetensors import safe_open
from torch import Tensor


class FileWeights(Mapping[str, Tensor]):
    """Weights by name; the folder is not checked, because whoever made or first loaded it did so.

    A file is opened for each tensor: if left open, everything read from it would count as this process's memory.
    """

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, Path] = {}
        index = folder / "model.safetensors.index.json"
        if index.exists():
            named = json.loads(index.read_text())["weight_map"]
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
