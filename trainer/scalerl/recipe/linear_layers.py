"""Tensors of a model's folder by the headers of its files, and the linear layers among them."""

import json
import re
from pathlib import Path

from scalerl.recipe.models import NUM_EXPERTS

IN_A_BLOCK = re.compile(r"\.\d+\.")


def stored_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Shapes of the tensors in a folder's safetensors files, by name."""
    return {name: shape for path in folder.glob("*.safetensors") for name, shape in _header(path).items()}


def _header(path: Path) -> dict[str, tuple[int, ...]]:
    """Shapes in a file's header: 8 bytes of length, then JSON."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {name: tuple(one["shape"]) for name, one in header.items() if name != "__metadata__"}


def linear_layers(folder: Path) -> dict[str, tuple[int, int]]:
    """Sizes (out, in) of the linear layers in the blocks of a folder's model, by name; experts and routers are none.

    >>> linear_layers(Path("qwen"))
    {'model.layers.0.self_attn.q_proj': (896, 896), ...}
    """
    config = json.loads((folder / "config.json").read_text())
    experts = next((number for name in NUM_EXPERTS if (number := config.get(name))), 0)
    found: dict[str, tuple[int, int]] = {}
    for name, shape in stored_shapes(folder).items():
        layer, _, kind = name.rpartition(".")
        is_matrix = kind == "weight" and len(shape) == 2 and IN_A_BLOCK.search(name) is not None
        if is_matrix and ".experts." not in name and shape[0] != experts:
            found[layer] = shape[0], shape[1]
    return found
