"""What of a model decides how much work it is."""

from dataclasses import dataclass


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
