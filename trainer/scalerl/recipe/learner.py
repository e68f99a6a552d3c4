"""What holds the learner's network and its optimiser: one process, or several that each hold a shard of it."""

from typing import Annotated, Literal

from pydantic import Field

from scalerl.frozen import Count, Frozen, Unit


class TorchSettings(Frozen):
    """All of it in the process that trains."""

    type: Literal["torch"] = "torch"

    @property
    def ranks(self) -> int:
        """Processes that hold it."""
        return 1


class DeepSpeedSettings(Frozen):
    """DeepSpeed's ZeRO (arXiv 1910.02054): every rank keeps its share of what it would otherwise hold whole.

    The gradient is that of the whole batch on any number of ranks, summed in FP32. Needs `pip install deepspeed`.
    """

    type: Literal["deepspeed"] = "deepspeed"
    zero: Literal[2, 3] = 2
    """2 shares out gradients and AdamW's moments; 3 the weights as well, which each layer then gathers when it is
    computed."""
    offload: Literal["none", "cpu"] = "none"
    """cpu keeps AdamW's moments and FP32 weights in the host's memory and steps there."""
    ranks: Annotated[Count, Unit("processes")] = 1
    """Processes that train together, on GPUs one each. On the virtual clock compute counts the modelled `trainers`,
    however many ranks there are. Results change by rounding alone, and a run may resume with another number, so runs
    keep their ids whatever it is."""


class FsdpSettings(Frozen):
    """PyTorch's own sharding (FSDP2, `fully_shard`): weights, gradients and moments are shared out, as by ZeRO-3."""

    type: Literal["fsdp"] = "fsdp"
    ranks: Annotated[Count, Unit("processes")] = 1
    """As for `deepspeed`."""


LearnerSettings = Annotated[TorchSettings | DeepSpeedSettings | FsdpSettings, Field(discriminator="type")]
