"""What decoding, training and weight pushes cost on the modelled device: seconds and floating-point operations.

    decode step of n sequences on one generator   a + b n
    prefill                                       c per token
    update                                        d per trained token, divided by the trainers
    weight push                                   e

Reading the KV cache and the attention of long prompts are left out.

Compute counted with it is *modelled* GPU-hours and is never mixed with measured ones.
"""

from dataclasses import dataclass

from scalerl.model.size import ModelSize
from scalerl.recipe import Virtual


@dataclass(frozen=True, kw_only=True)
class CostModel:
    """Seconds for each kind of work on one device."""

    decode_base_s: float
    """a: the weights are read once, whatever the number of sequences."""
    decode_sequence_s: float
    """b: one token of one sequence."""
    prefill_token_s: float
    """c: one prompt token."""
    train_token_s: float
    """d: one token forward and backward."""
    push_s: float
    """e: new weights from trainers to generators."""


def cost_model(cluster: Virtual, size: ModelSize) -> CostModel:
    """Roofline costs: bytes of weights over bandwidth; 2 FLOPs an active parameter and token forward, 6 in training.

    Weights are charged as BF16 whatever precision the recipe has, so that precisions are compared at equal cost. A
    decode step is charged all experts: a batch of any size sends some token to each.
    """
    device = cluster.device
    parameters = size.parameters * cluster.parameters_stand_for
    active = size.active_parameters * cluster.parameters_stand_for
    tokens = cluster.tokens_stand_for
    flops_per_s = device.tflops * 1e12 * device.utilisation
    return CostModel(
        decode_base_s=tokens * 2 * parameters / (device.memory_gb_per_s * 1e9),
        decode_sequence_s=tokens * 2 * active / flops_per_s,
        prefill_token_s=tokens * 2 * active / flops_per_s,
        train_token_s=tokens * 6 * active / flops_per_s,
        push_s=2 * parameters / (device.link_gb_per_s * 1e9),
    )


def forward_flops(size: ModelSize, tokens: int, context_tokens: int) -> int:
    """2 N per token, and 4 x attention width for each cached position a token attends to."""
    return 2 * size.active_parameters * tokens + 4 * size.attention_width * context_tokens
