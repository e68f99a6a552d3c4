"""What runs inside vLLM's workers: new weights into the model that a worker serves. A worker imports it by name.

vLLM keeps its own layout of the weights: several are one matrix, experts are packed, each worker of a tensor-parallel
group has its part. Its layer-wise reload goes from Hugging Face's names to that layout once more, in place.
"""

import os
from collections.abc import Iterable
from typing import Any

from safetensors import safe_open
from torch import Tensor
from vllm.config import set_current_vllm_config
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

MIXTURE = "RoutedExperts"
"""vLLM's layer that holds experts."""
HEAD = "ParallelLMHead"
"""Its layer that makes logits."""


class WeightReceiver:
    """Methods that a worker gets besides its own (`worker_extension_cls`)."""

    model_runner: Any
    vllm_config: Any

    def process_id(self) -> int:
        """Of the process that the worker is in."""
        return os.getpid()

    def receive_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Replace the model's weights. An error leaves the engine unusable: check names and shapes before."""
        model, config = self.model_runner.model, self.vllm_config.model_config
        with set_current_vllm_config(self.vllm_config):
            initialize_layerwise_reload(model)
            model.load_weights((name, tensor.to(config.dtype)) for name, tensor in weights)
            finalize_layerwise_reload(model, config)
            if self.vllm_config.device_config.device_type == "cpu":
                pack_experts(model)
                pack_heads(model)

    def receive_file(self, path: str) -> None:
        """The same from a safetensors file, for workers that are processes of their own."""
        with safe_open(path, framework="pt") as file:
            self.receive_weights((name, file.get_tensor(name)) for name in file.keys())  # noqa: SIM118, not a dict


def pack_experts(model: Any) -> None:
    """Pack the experts for a CPU again: vLLM 0.32 does it on the first load only, and would go on with the old ones."""
    for layer in model.modules():
        if type(layer).__name__ == MIXTURE:
            layer.quant_method.moe_kernel.fused_experts.process_weights_after_loading(layer)


def pack_heads(model: Any) -> None:
    """Pack the head for a CPU again: vLLM 0.32 does not where it is tied to the embedding, since no file has weights of
    its own for it."""
    for layer in model.modules():
        if type(layer).__name__ == HEAD:
            layer.quant_method.process_weights_after_loading(layer)
