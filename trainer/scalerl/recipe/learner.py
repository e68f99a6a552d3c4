"""The learner of a scale: network and optimiser in one process, or sharded over several."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from scalerl.frozen import Count, Frozen, Unit


class TorchSettings(Frozen):
    """Network and optimiser in the training process."""

    type: Literal["torch"] = "torch"
    ranks: ClassVar[int] = 1


class DeepSpeedSettings(Frozen):
    """DeepSpeed's ZeRO (arXiv 1910.02054): every rank keeps only its share of the training state.

    The gradient is that of the whole batch on any number of ranks, summed in FP32. Needs `pip install deepspeed`.
    """

    type: Literal["deepspeed"] = "deepspeed"
    zero: Literal[2, 3] = 2
    """2 shards gradients and AdamW's moments; 3 also shards the weights, which each layer gathers when it is
    computed."""
    offload: Literal["none", "cpu"] = "none"
    """cpu keeps AdamW's moments and FP32 weights in host memory and takes its steps there."""
    ranks: Annotated[Count, Unit("processes")] = 1
    """Processes that train together, with one GPU each. On the virtual clock compute counts the modelled `trainers`,
    regardless of the number of ranks. Changes results only by rounding, and a run may resume with another number, so
    run ids do not depend on it."""


class FsdpSettings(Frozen):
    """PyTorch's own sharding (FSDP2, `fully_shard`) of weights, gradients and moments, as in ZeRO-3."""

    type: Literal["fsdp"] = "fsdp"
    ranks: Annotated[Count, Unit("processes")] = 1
    """Processes that train together; see `deepspeed`."""


LearnerSettings = Annotated[TorchSettings | DeepSpeedSettings | FsdpSettings, Field(discriminator="type")]
