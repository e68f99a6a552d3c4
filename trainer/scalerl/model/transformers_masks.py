"""Attention masks and maximum positions of a `transformers` model, read from its configuration."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask
from transformers import PreTrainedConfig

from scalerl.model.attention import BY_ROWS, RowsMask, block_mask
from scalerl.model.packing import Packing

Mask = Tensor | BlockMask
Masks = Mask | dict[str, Mask]


def attention_masks(config: PreTrainedConfig, seen: Tensor, distance: Tensor) -> Masks:
    """Attention mask [R, 1, W, K]; a dict by kind of layer if the model has several kinds.

    `seen` covers causality and the filled part of the cache; a sliding window also masks what is `sliding_window` or
    more positions back.
    """
    return _by_kind(config, lambda window: (seen if window is None else seen & (distance < window))[:, None])


def packed_masks(config: PreTrainedConfig, packing: Packing) -> Masks:
    """Masks by blocks or by rows for the tokens of a packed row; a dict by kind of layer if the model has several."""
    mask_of = RowsMask.of if config._attn_implementation == BY_ROWS else block_mask
    return _by_kind(config, lambda window: mask_of(packing, window))


def _by_kind(config: PreTrainedConfig, mask_of: Callable[[int | None], Mask]) -> Masks:
    """Mask of each kind of layer, made from its window (None: all positions)."""
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ["sliding_attention" if window else "full_attention"])
    if unknown := kinds - {"full_attention", "sliding_attention"}:
        raise ValueError(
            f"{config.model_type} has layers of {', '.join(sorted(unknown))}; only full and sliding-window "
            f"attention is supported"
        )
    masks = {kind: mask_of(window if kind == "sliding_attention" else None) for kind in kinds}
    return masks if len(kinds) > 1 else masks[kinds.pop()]


def added(masks: Masks) -> Masks:
    """Additive masks: 0 where attention is allowed, the most negative float32 elsewhere."""
    return {kind: _added(mask) for kind, mask in masks.items()} if isinstance(masks, dict) else _added(masks)


def _added(mask: Mask) -> Tensor:
    assert isinstance(mask, Tensor), "eager attention needs a full mask"
    return torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, torch.finfo(torch.float32).min)


def logit_factor(config: PreTrainedConfig) -> float:
    """Factor that the family applies to its logits: `logit_scale` (Cohere) or 1 / `logits_scaling` (Granite)."""
    return (getattr(config, "logit_scale", None) or 1.0) / (getattr(config, "logits_scaling", None) or 1.0)


def head_size(config: PreTrainedConfig) -> int:
    """Size of one head's key."""
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def kv_heads(config: PreTrainedConfig) -> int:
    """Number of key-value heads, which query heads may share."""
    return getattr(config, "num_key_value_heads", None) or config.num_attention_heads


def refuse_positions(config: PreTrainedConfig, positions: int) -> None:
    """Raises ValueError if the model supports fewer positions, or rotates cached keys differently as a row grows."""
    most = getattr(config, "max_position_embeddings", None)
    if most is not None and positions > most:
        raise ValueError(
            f"a prompt and its answer take up to {positions} tokens, but {config.model_type} supports {most} "
            f"positions; lower generation.thinking or generation.answer, or use shorter prompts"
        )
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    if rope in ("dynamic", "longrope"):
        raise ValueError(
            f"{config.model_type}: rotary positions of type {rope} depend on the longest row in the batch, "
            f"which is not supported"
        )
