"""An adapter's tensors under the names in peft's file, and added to a model's own weights.

base_model.model.model.layers.3.mlp.down_proj.lora_A.weight      A, [rank, in]
base_model.model.model.layers.3.mlp.down_proj.lora_B.weight      B, [out, rank]
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from scalerl.recipe import Lora
from scalerl.weights.hugging_face import Weights, some_of

IN_FILE = "base_model.model."
"""Prefix of peft's names."""


def is_of_adapter(name: str) -> bool:
    """True for a tensor of an adapter, by any of its names."""
    return ".lora_A." in name or ".lora_B." in name


def file_name(name: str) -> str:
    """Name in peft's file of a tensor of a model with an adapter.

    >>> file_name("model.layers.3.mlp.down_proj.lora_A.default.weight")
    'base_model.model.model.layers.3.mlp.down_proj.lora_A.weight'
    """
    layer, _, _ = name.rpartition(".default.")
    return f"{IN_FILE}{layer}.weight"


class MergedWeights(Mapping[str, Tensor]):
    """A model's weights with an adapter added, W + alpha / rank B A, each computed when it is read.

    The sum is in FP32. Weights that no target has are those of `base`.
    """

    def __init__(self, base: Weights, adapter: Weights, settings: Lora) -> None:
        """Raises ValueError if `base` lacks the weights of a target."""
        self.base, self.adapter, self.factor = base, adapter, settings.alpha / settings.rank
        layers = [name.removesuffix(".lora_A.weight") for name in adapter if name.endswith(".lora_A.weight")]
        self._layers = {f"{layer.removeprefix(IN_FILE)}.weight": layer for layer in layers}
        if missing := sorted(self._layers.keys() - set(base)):
            raise ValueError(
                f"an adapter cannot be added to the weights of this model: its files have no {some_of(missing)}; save "
                f"the model again with `save_pretrained`, or use adapter type 'none'"
            )

    def __getitem__(self, name: str) -> Tensor:
        weight, layer = self.base[name], self._layers.get(name)
        if layer is None:
            return weight
        down, up = (self.adapter[f"{layer}.lora_{part}.weight"].detach().cpu().float() for part in "AB")
        return torch.addmm(weight.float(), up, down, alpha=self.factor)

    def __iter__(self) -> Iterator[str]:
        return iter(self.base)

    def __len__(self) -> int:
        return len(self.base)
