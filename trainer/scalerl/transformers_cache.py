"""A `transformers` model's forward pass on cached keys and values, rows at positions of their own.

The library calls `update` of the cache it is given in every attention layer; ours writes into one preallocated tensor
and hands back what the layer may see, and a mask of our own says which of it each row has reached.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import Cache, PreTrainedConfig

from scalerl.kv_cache import KVCache, Prefill

if TYPE_CHECKING:
    from scalerl.transformers_policy import TransformersPolicy

Pair = tuple[Tensor, Tensor]
Masks = Tensor | dict[str, Tensor]


class TransformersCache(KVCache):
    """Decodes a `TransformersPolicy`; keys have as many heads as the model's keys."""

    def __init__(self, policy: "TransformersPolicy", *, slots: int, positions: int) -> None:
        config = policy.config
        refuse_positions(config, positions)
        super().__init__(
            layers=config.num_hidden_layers,
            slots=slots,
            heads=getattr(config, "num_key_value_heads", None) or config.num_attention_heads,
            positions=positions,
            head_size=head_size(config),
        )
        self.policy = policy

    def logits(self, tokens_n: Tensor, position_n: Tensor, prefill: Prefill | None) -> Tensor:
        """Logits [n, V] after one more token of each of the first n rows."""
        if prefill is not None:
            width = prefill.tokens.shape[1]
            position_T = torch.arange(width)
            distance_TT = position_T[:, None] - position_T
            prompts = PromptWriter(self.kv, prefill)
            self.policy.body(prefill.tokens, position_T[None], (distance_TT >= 0)[None], distance_TT, prompts)
        reach = int(position_n.max()) + 1
        distance_n1T = position_n[:, None, None] - torch.arange(reach)
        rows = RowWriter(self.kv, position_n, reach)
        states = self.policy.body(tokens_n[:, None], position_n[:, None], distance_n1T >= 0, distance_n1T, rows)
        return self.policy.logits(states.hidden[:, 0])


class RowWriter(Cache):
    """Takes one token of each row, each at its own position."""

    def __init__(self, kv: Tensor, position_n: Tensor, reach: int) -> None:
        super().__init__(layers=[])
        self.kv, self.position_n, self.reach = kv, position_n, reach
        self.row_n = torch.arange(len(position_n))

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> Pair:
        """Cache [n, heads, 1, D]; what each row may attend to, [n, heads, reach, D]."""
        layer = self.kv[layer_idx]
        for which, new in enumerate((key_states, value_states)):
            layer[self.row_n, :, which, self.position_n] = new[:, :, 0].to(layer.dtype)
        seen = layer[: len(self.row_n), :, :, : self.reach]
        return seen[:, :, 0], seen[:, :, 1]


class PromptWriter(Cache):
    """Takes whole prompts and copies each to its rows."""

    def __init__(self, kv: Tensor, prefill: Prefill) -> None:
        super().__init__(layers=[])
        self.kv, self.prefill = kv, prefill

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> Pair:
        """Cache [P, heads, W, D]; a prompt attends to itself."""
        rows, prompts = self.prefill.rows, self.prefill.prompts
        for which, new in enumerate((key_states, value_states)):
            self.kv[layer_idx, rows, :, which, : new.shape[2]] = new[prompts].to(self.kv.dtype)
        return key_states, value_states


def attention_masks(config: PreTrainedConfig, seen: Tensor, distance: Tensor) -> Masks:
    """What layers may attend to, [R, 1, W, K], by the kind of layer where a model has several.

    `seen` is causality, and what of the cache is filled; a sliding window also hides what is `sliding_window` or more
    positions back.
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
    """Raises ValueError where the model knows fewer positions, or turns cached ones another way as a row grows."""
    most = getattr(config, "max_position_embeddings", None)
    if most is not None and positions > most:
        raise ValueError(
            f"a prompt and its answer take up to {positions} tokens, but {config.model_type} knows {most} positions; "
            f"lower generation.thinking or generation.answer, or take shorter prompts"
        )
    rope = (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")
    if rope in ("dynamic", "longrope"):
        raise ValueError(f"{config.model_type}: rotary positions of type {rope} depend on the longest row beside them")
