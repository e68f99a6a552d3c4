"""Sizes of a model that determine its compute, and the number of logits computed at once."""

from dataclasses import dataclass

LOGITS_AT_ONCE = 2**24
"""Logits per chunk: 64 MiB in FP32, large enough that rereading the head's matrix for each chunk costs little."""


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """Parameter counts and widths of a model.

    ModelSize(parameters=8_030_000_000, active_parameters=8_030_000_000, attention_width=32 * 32 * 128,
              cache_width=2 * 32 * 8 * 128)    Llama 3 8B
    """

    parameters: int
    """Parameters stored, read and pushed."""
    active_parameters: int
    """Parameters used per token; a mixture of experts counts only the experts a token is routed to."""
    attention_width: int
    """Heads x head size, summed over layers."""
    cache_width: int
    """Numbers cached per token: keys and values of all layers."""
