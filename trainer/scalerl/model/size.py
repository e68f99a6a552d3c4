"""Sizes of a model that determine its compute, and the number of logits computed at once."""

from dataclasses import dataclass

LOGITS_AT_ONCE = {"cpu": 2**24, "cuda": 2**27}
"""Logits per chunk on the host and on a device: 64 MiB or 512 MiB in FP32, so that rereading the head's matrix costs
little."""

SPLIT_AT_ONCE = 2**26
"""Numbers of the head's matrix that are in memory as two parts at a time (`scalerl.model.exact_product`)."""


def logits_at_once(device: str) -> int:
    """Logits per chunk on this type of device, as PyTorch names it."""
    return LOGITS_AT_ONCE["cpu" if device == "cpu" else "cuda"]


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """Parameter counts and widths of a model.

    ModelSize(parameters=8_030_000_000, active_parameters=8_030_000_000, attention_width=32 * 32 * 128,
              cache_width=2 * 32 * 8 * 128)    Llama 3 8B
    """

    parameters: int
    """Parameters stored and read, an adapter's included."""
    active_parameters: int
    """Parameters used per token; a mixture of experts counts only the experts a token is routed to."""
    attention_width: int
    """Heads x head size, summed over layers."""
    cache_width: int
    """Numbers cached per token: keys and values of all layers."""
    trained_parameters: int | None = None
    """Parameters with a gradient, all of them used per token: those of an adapter. None if all parameters have one."""

    @property
    def gradients_per_token(self) -> int:
        """Parameters used per token that have a gradient."""
        return self.active_parameters if self.trained_parameters is None else self.trained_parameters

    @property
    def pushed_parameters(self) -> int:
        """Parameters that generators are sent after a step."""
        return self.parameters if self.trained_parameters is None else self.trained_parameters
