"""The scale's adapter: a small trained part beside a model whose own weights stay as they are."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from scalerl.frozen import Count, Frozen, Positive
from scalerl.recipe.models import Model, linear_layers


class NoAdapter(Frozen):
    """Trains all weights of the model."""

    type: Literal["none"] = "none"


class Lora(Frozen):
    """LoRA (arXiv 2106.09685) by `peft`: a target layer computes W x + alpha / rank B (A x), and only A and B are
    trained. At the start B is 0 and A is drawn from the run's seed.

    Only for a pretrained model. Gradients, AdamW's moments, checkpoints and the weights on their way to generators are
    the adapter's alone; the model's own weights are read from the folder that the run starts from. `model/` of a run
    has the adapter added to the weights.
    """

    type: Literal["lora"] = "lora"
    rank: Count = 16
    """Rows of A and columns of B."""
    alpha: Positive = 32.0
    """Numerator of the factor alpha / rank."""
    targets: Literal["all-linear"] | Annotated[tuple[str, ...], Field(min_length=1)] = "all-linear"
    """Names of the linear layers with an adapter, such as [q_proj, v_proj], in every block; all-linear: all of them.
    Never the head, the embedding, or the experts and routers of a mixture of experts."""

    @field_validator("targets")
    @classmethod
    def _in_any_order(cls, targets: str | tuple[str, ...]) -> str | tuple[str, ...]:
        """Sorted, since the order changes no result."""
        return targets if isinstance(targets, str) else tuple(sorted(set(targets)))


Adapter = Annotated[NoAdapter | Lora, Field(discriminator="type")]


def targeted(targets: str | tuple[str, ...], layers: set[str]) -> set[str]:
    """Names of layers such as `layers.3.mlp.down_proj` that have an adapter; ValueError if a target names none."""
    names = {layer: layer.rpartition(".")[2] for layer in layers}
    if targets == "all-linear":
        return layers
    if unknown := sorted(set(targets) - set(names.values())):
        raise ValueError(
            f"adapter.targets: the model has no linear layer {', '.join(map(repr, unknown))} that an adapter can be "
            f"put on; its linear layers are {', '.join(sorted(set(names.values()))) or 'none'}"
        )
    return {layer for layer, name in names.items() if name in targets}


def refuse_unfit(adapter: Lora, model: Model) -> None:
    """Raises ValueError if this model cannot have the adapter; of a folder only the headers of its files are read."""
    if model.type != "pretrained":
        raise ValueError(
            f"adapter.type 'lora' trains a small part of a pretrained model, but model.type is {model.type!r}, made "
            f"from scratch; use model type 'pretrained', or adapter type 'none'"
        )
    if (Path(model.path) / "config.json").exists():  # `platform plan` works without the folder
        targeted(adapter.targets, set(linear_layers(Path(model.path))))
