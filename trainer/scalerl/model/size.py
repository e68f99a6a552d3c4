"""What of a model decides how much work it is, and how much of it is done at once."""

from dataclasses import dataclass

LOGITS_AT_ONCE = 2**24
"""64 MiB in FP32, and enough tokens that reading the head's matrix for each chunk costs little."""


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """Numbers of a model.

    ModelSize(parameters=8_030_000_000, active_parameters=8_030_000_000, attention_width=32 * 32 * 128,
              cache_width=2 * 32 * 8 * 128)    Llama 3 8B
    """

    parameters: int
    """Numbers that are stored, read and pushed."""
    active_parameters: int
    """Numbers that one token is multiplied with: of a mixture of experts, those it is sent to."""
    attention_width: int
    """Heads x head size, summed over layers."""
    cache_width: int
    """Numbers that one token leaves in the KV cache: keys and values of all layers."""
