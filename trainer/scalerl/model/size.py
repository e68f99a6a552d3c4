"""What of a model decides how much work it is."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """Numbers of a model.

    ModelSize(parameters=46_700_000_000, active_parameters=12_900_000_000, attention_width=32 * 4096)    Mixtral 8x7B
    """

    parameters: int
    """Numbers that are stored, read and pushed."""
    active_parameters: int
    """Numbers that one token is multiplied with: of a mixture of experts, those it is sent to."""
    attention_width: int
    """Heads x head size, summed over layers."""
