"""What a `transformers` model may attend to, and how far its positions reach, read from its configuration."""

from torch import Tensor
from transformers import PreTrainedConfig

Masks = Tensor | dict[str, Tensor]


def attention_masks(config: PreTrainedConfig, seen: Tensor, distance: Tensor) -> Masks:
    """What layers may attend to, [R, 1, W, K], by the kind of layer where a model has several.

    `seen` says what causality and the filled part of the cache allow; a sliding window also hides what is
    `sliding_window` or more positions back.
    """
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ["sliding_attention" if window else "full_attention"])
    if unknown := kinds - {"full_attention", "sliding_attention"}:
        raise ValueError(f"{config.model_type} has layers of {', '.join(sorted(unknown))}; only attention is supported")
    masks = {"full_attention": seen[:, None]}
    if "sliding_attention" in kinds:
        assert window is not None
        masks["sliding_attention"] = (seen & (distance < window))[:, None]
    return masks if len(kinds) > 1 else masks[kinds.pop()]


def head_size(config: PreTrainedConfig) -> int:
    """Numbers of one head's key."""
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def refuse_positions(config: PreTrainedConfig, positions: int) -> None:
    """Raises ValueError if the model knows fewer positions, or if its cached keys would turn as a row grows."""
    most = getattr(config, "max_position_embeddings", None)
    if most is not None and positions > most:
        raise ValueError(
            f"a prompt and its answer take up to {positions} tokens, but {config.model_type} knows {most} positions; "
            f"lower generation.thinking or generation.answer, or take shorter prompts"
        )
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    if rope in ("dynamic", "longrope"):
        raise ValueError(f"{config.model_type}: rotary positions of type {rope} depend on the longest row beside them")
