"""Model sizes that determine memory, without the weights and without torch."""

import math
from pathlib import Path
from typing import Any

from scalerl.frozen import Parameters
from scalerl.model.size import ModelSize
from scalerl.recipe import Lora, Model, NoAdapter
from scalerl.recipe.adapter import targeted
from scalerl.recipe.models import NUM_EXPERTS, Shape, linear_layers, stored_shapes
from scalerl.tokens import make_tokenizer


class ModelShape(Shape):
    """Sizes of any decoder.

    ModelShape(parameters=8_030_261_248, active_parameters=8_030_261_248, vocabulary=128_256, hidden=4096, layers=32,
               heads=32, kv_heads=8, head_size=128, mlp=14_336, is_built_in=False)                Llama 3.1 8B
    """

    active_parameters: Parameters  # pyright: ignore[reportGeneralTypeIssues, reportIncompatibleVariableOverride]  required
    """Parameters used per token."""
    is_built_in: bool
    """True if the model is the built-in one, so that `transformers` is not imported."""
    adapter_parameters: int | None = None
    """Parameters of the adapter, not counted in the others; None if all parameters are trained."""

    @property
    def trained_parameters(self) -> int:
        """Parameters with a gradient and moments."""
        return self.parameters if self.adapter_parameters is None else self.adapter_parameters

    @property
    def size(self) -> ModelSize:
        """Sizes that determine the compute of this model."""
        return ModelSize(
            parameters=self.parameters + (self.adapter_parameters or 0),
            active_parameters=self.active_parameters + (self.adapter_parameters or 0),
            trained_parameters=self.adapter_parameters,
            attention_width=self.layers * self.heads * self.head_size,
            cache_width=2 * self.layers * self.kv_heads * self.head_size,
        )


def shape_of(model: Model, adapter: Lora | NoAdapter | None = None) -> ModelShape:
    """Shape of the model with its adapter; from a folder only configuration and headers are read.

    Raises ValueError if neither the folder nor `shape` gives it.
    """
    shape = _of_model(model)
    if not isinstance(adapter, Lora):
        return shape
    assert model.type == "pretrained", "refused when the recipe was read"
    folder = Path(model.path)
    layers = linear_layers(folder) if (folder / "config.json").exists() else usual_layers(shape)
    numbers = sum(adapter.rank * sum(layers[name]) for name in targeted(adapter.targets, set(layers)))
    return shape.model_copy(update={"adapter_parameters": numbers})


def usual_layers(shape: ModelShape) -> dict[str, tuple[int, int]]:
    """Sizes (out, in) of the linear layers of a Llama of these sizes, by name, for a model whose folder is not here."""
    attended, cached = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    of_block = {
        "q_proj": (attended, shape.hidden),
        "k_proj": (cached, shape.hidden),
        "v_proj": (cached, shape.hidden),
        "o_proj": (shape.hidden, attended),
        "gate_proj": (shape.mlp, shape.hidden),
        "up_proj": (shape.mlp, shape.hidden),
        "down_proj": (shape.hidden, shape.mlp),
    }
    return {f"layers.{block}.{name}": size for block in range(shape.layers) for name, size in of_block.items()}


def _of_model(model: Model) -> ModelShape:
    if model.type == "pretrained":
        folder = Path(model.path)
        if model.shape is None or (folder / "config.json").exists():
            return _of_folder(folder)
        used = model.shape.active_parameters or model.shape.parameters
        return ModelShape(**{**model.shape.model_dump(), "active_parameters": used}, is_built_in=False)
    hidden, layers, vocabulary = model.hidden, model.layers, make_tokenizer(model).size
    experts, active = (1, 1) if model.type == "llama" else (model.experts, model.experts_per_token)
    router = 0 if model.type == "llama" else model.experts * hidden
    of_block = 4 * hidden**2 + experts * 3 * hidden * model.mlp + router + 2 * hidden
    parameters = 2 * vocabulary * hidden + layers * of_block + hidden
    return ModelShape(
        parameters=parameters,
        active_parameters=parameters - layers * (experts - active) * 3 * hidden * model.mlp,
        vocabulary=vocabulary,
        hidden=hidden,
        layers=layers,
        heads=model.heads,
        kv_heads=model.heads,
        head_size=hidden // model.heads,
        mlp=active * model.mlp,
        is_built_in=model.type == "llama",
    )


def _of_folder(folder: Path) -> ModelShape:
    """Sizes from config.json, under each family's names, and the number of parameters from the weights' headers."""
    from transformers import AutoConfig  # seconds to import

    config: Any = AutoConfig.from_pretrained(folder)
    config = config.get_text_config()
    heads = config.num_attention_heads
    experts = next((number for name in NUM_EXPERTS if (number := getattr(config, name, None))), 0)
    mlp = getattr(config, "intermediate_size", None) or getattr(config, "ffn_dim", None) or 4 * config.hidden_size
    mlp = max(mlp) if isinstance(mlp, list) else mlp  # some families have a size for each layer
    if experts:
        shared = getattr(config, "shared_expert_intermediate_size", None) or 0
        mlp = config.num_experts_per_tok * (getattr(config, "moe_intermediate_size", None) or mlp) + shared
    parameters, of_experts = num_stored(folder), num_stored(folder, among=".experts.")
    if not parameters:
        raise ValueError(f"{folder} has no weights (*.safetensors) to count; set the model's sizes as model.shape")
    idle = of_experts - of_experts * config.num_experts_per_tok // experts if experts else 0
    return ModelShape(
        parameters=parameters,
        active_parameters=parameters - idle,
        vocabulary=config.vocab_size,
        hidden=config.hidden_size,
        layers=config.num_hidden_layers,
        heads=heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_size=getattr(config, "head_dim", None) or config.hidden_size // heads,
        mlp=mlp,
        is_built_in=False,
    )


def num_stored(folder: Path, *, among: str = "") -> int:
    """Number of elements in a folder's safetensors files, counting only tensors whose names contain `among`."""
    return sum(math.prod(shape) for name, shape in stored_shapes(folder).items() if among in name)
