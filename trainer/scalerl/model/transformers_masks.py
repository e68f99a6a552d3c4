"""What a `transformers` model may attend to, and how far its positions reach, read from its configuration."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask
from transformers import PreTrainedConfig

from scalerl.model.attention import block_mask
from scalerl.model.packing import Packing

Mask = Tensor | BlockMask
Masks = Mask | dict[str, Mask]


def attention_masks(config: PreTrainedConfig, seen: Tensor, distance: Tensor) -> Masks:
    """What layers may attend to, [R, 1, W, K], by the kind of layer where a model has several.

    `seen` says what causality and the filled part of the cache allow; a sliding window also hides what is
    `sliding_window` or more positions back.
    """
    return _by_kind(config, lambda window: (seen if window is None else seen & (distance < window))[:, None])


def packed_masks(config: PreTrainedConfig, packing: Packing) -> Masks:
    """The same for the tokens of a packed row, as blocks instead of a mask of every token by every token."""
    return _by_kind(config, lambda window: block_mask(packing, window))


def _by_kind(config: PreTrainedConfig, mask_of: Callable[[int | None], Mask]) -> Masks:
    """The mask of each kind of layer, made by its window; None sees all positions."""
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ["sliding_attention" if window else "full_attention"])
    if unknown := kinds - {"full_attention", "sliding_attention"}:
        raise ValueError(
            f"{config.model_type} has layers of {', '.join(sorted(unknown))}; only attention is supported, to all "
            f"positions or to a window"
        )
    masks = {kind: mask_of(window if kind == "sliding_attention" else None) for kind in kinds}
    return masks if len(kinds) > 1 else masks[kinds.pop()]


def added(masks: Masks) -> Masks:
    """Masks as numbers that attention scores are added to: 0, or the least number where nothing may be seen."""
    if isinstance(masks, dict):
        return {kind: _added(mask) for kind, mask in masks.items()}
    return _added(masks)


def _added(mask: Mask) -> Tensor:
    assert isinstance(mask, Tensor), "attention that is written out takes whole masks"
    return torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, torch.finfo(torch.float32).min)


def logit_factor(config: PreTrainedConfig) -> float:
    """What the family multiplies its logits by: Cohere by `logit_scale`, Granite by 1 / `logits_scaling`."""
    return (getattr(config, "logit_scale", None) or 1.0) / (getattr(config, "logits_scaling", None) or 1.0)


def head_size(config: PreTrainedConfig) -> int:
    """Numbers of one head's key."""
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def kv_heads(config: PreTrainedConfig) -> int:
    """Heads of keys and values, which several heads of queries may share."""
    return getattr(config, "num_key_value_heads", None) or config.num_attention_heads


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
