"""Weight updates inside vLLM's workers, which import this module by name.

vLLM has its own layout of weights: several are fused, experts are packed, and each worker of a tensor-parallel group
has a part. Its layer-wise reload converts from Hugging Face's names to that layout again, in place.
"""

import os
from collections.abc import Iterable
from typing import Any

from safetensors import safe_open
from torch import Tensor
from vllm.config import set_current_vllm_config
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

MIXTURE = "RoutedExperts"
"""vLLM's layer of experts."""
HEAD = "ParallelLMHead"
"""vLLM's layer that computes logits."""


class WeightReceiver:
    """Methods added to a vLLM worker (`worker_extension_cls`)."""

    model_runner: Any
    vllm_config: Any

    def process_id(self) -> int:
        """Id of the worker's process."""
        return os.getpid()

    def receive_weights(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Replace the model's weights. An error leaves the engine unusable, so check names and shapes first."""
        model, config = self.model_runner.model, self.vllm_config.model_config
        with set_current_vllm_config(self.vllm_config):
            initialize_layerwise_reload(model)
            model.load_weights((name, tensor.to(config.dtype)) for name, tensor in weights)
            finalize_layerwise_reload(model, config)
            if self.vllm_config.device_config.device_type == "cpu":
                pack_experts(model)
                pack_heads(model)

    def receive_file(self, path: str) -> None:
        """Replace the weights from a safetensors file, for workers in other processes."""
        with safe_open(path, framework="pt") as file:
            self.receive_weights((name, file.get_tensor(name)) for name in file.keys())  # noqa: SIM118, not a dict


def pack_experts(model: Any) -> None:
    """Repack the experts for a CPU: vLLM 0.32 packs them only on the first load, and would keep the old ones."""
    for layer in model.modules():
        if type(layer).__name__ == MIXTURE:
            layer.quant_method.moe_kernel.fused_experts.process_weights_after_loading(layer)


def pack_heads(model: Any) -> None:
    """Repack the head for a CPU: vLLM 0.32 does not if it is tied to the embedding, as no file has its weights."""
    for layer in model.modules():
        if type(layer).__name__ == HEAD:
            layer.quant_method.process_weights_after_loading(layer)
