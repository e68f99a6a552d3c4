"""The cluster of a scale: a modelled one played on a virtual clock, or real processes measured on the wall clock."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from scalerl.frozen import Count, Frozen, Positive, Unit


class Accelerator(Frozen):
    """The accelerator the virtual clock models; the defaults are one NVIDIA H100 SXM."""

    name: str = "H100 SXM"
    """Shown beside every modelled figure."""
    memory_gb_per_s: Annotated[Positive, Unit("GB/s")] = 3350.0
    """Memory bandwidth: a decode step reads the weights once, and the keys and values of every running sequence."""
    memory_gb: Annotated[Positive, Unit("GB")] = 80.0
    """Memory; `platform plan` refuses what does not fit. It changes no result, so runs keep their ids."""
    tflops: Annotated[Positive, Unit("TFLOP/s")] = 989.0
    """Peak BF16 rate, dense."""
    utilisation: Annotated[float, Field(gt=0, le=1), Unit("share of the peak")] = 0.4
    """Share of the peak rate that prefill and training reach."""
    link_gb_per_s: Annotated[Positive, Unit("GB/s")] = 50.0
    """Bandwidth of a weight push from trainers to generators."""


class ChargedAttention(Frozen):
    """Attention takes time: decoding reads cached keys and values, and prefill and training multiply with them.

    A tiny model that plays a large one has its own width of attention; these factors give it that of the large one.
    Llama 3 8B has 32 layers x 32 heads x 128 = 131,072 numbers of width, and caches keys and values of 32 layers x 8
    heads x 128 = 65,536 numbers of 2 bytes per token.
    """

    type: Literal["charged"] = "charged"
    width_stands_for: Annotated[Positive, Unit("numbers")] | None = None
    """Each number of the attention width (heads x head size, summed over layers) is charged as this many; null is
    `parameters_stand_for` to the power 2/3: a model r times as deep and as wide has r^3 times the parameters and r^2
    times the width."""
    cache_stands_for: Annotated[Positive, Unit("numbers")] | None = None
    """Each number that a token leaves in the KV cache is charged as this many, 2 bytes each; null as above."""


class FreeAttention(Frozen):
    """Attention takes no time, and a decode step reads the weights alone: the account of runs before `attention`."""

    type: Literal["free"] = "free"


def _charged_unless_said(written: Any) -> Any:
    """Attention without a type is charged."""
    return {"type": "charged", **written} if isinstance(written, dict) else written


Attention = Annotated[
    Annotated[ChargedAttention | FreeAttention, Field(discriminator="type")],
    BeforeValidator(_charged_unless_said),
]


class Virtual(Frozen):
    """Modelled devices on a virtual clock, 4 generators per trainer (ScaleRL §2: 64 and 16 of 80 GPUs)."""

    type: Literal["virtual"] = "virtual"
    generators: Annotated[Count, Unit("devices")] = 64
    """Devices that decode."""
    trainers: Annotated[Count, Unit("devices")] = 16
    """Devices that train."""
    slots: Annotated[Count, Unit("sequences")] = 12
    """Sequences one generator decodes at a time."""
    device: Accelerator = Accelerator()
    """The modelled accelerator."""
    parameters_stand_for: Annotated[float, Field(ge=1), Unit("parameters")] = 1.0
    """Each model parameter is charged as this many, so that a tiny model plays a large one."""
    tokens_stand_for: Annotated[float, Field(ge=1), Unit("tokens")] = 1.0
    """Each token is charged as this many, so that a short answer plays a long one."""
    attention: Attention = ChargedAttention()
    """Whether attention takes time, and how large the attention is that the model plays."""

    @property
    def compute_name(self) -> str:
        """What compute on this cluster is counted in."""
        return "modelled GPU-hours"

    @property
    def extra_threads(self) -> int:
        """CPU threads beside those of the process that trains."""
        return 0


class Wall(Frozen):
    """Real processes on this machine, that train or decode; compute is measured, idle time included.

    A device is one of these processes with its threads. The scale's `threads` are those of a process that trains: with
    `learner: {type: torch}` one, which plays the schedule as well, else every rank of the learner.
    """

    type: Literal["wall"] = "wall"
    generators: Annotated[Count, Unit("processes")] = 1
    """Processes that decode."""
    slots: Annotated[Count, Unit("sequences")] = 128
    """Sequences one generator decodes at a time."""
    generator_threads: Annotated[Count, Unit("threads")] = 1
    """CPU threads of one generator, and of the evaluator."""
    evaluator: bool = False
    """Whether evaluations are measured by a process with devices of its own, as many as one generator has, while
    training goes on: it decodes published weights with the generator of the recipe. Otherwise everything stands still
    while the process that plays the schedule measures, with the built-in generator. Its device is not part of compute,
    as no evaluation is. Training waits where two evaluations are not measured yet when the next is due."""

    @property
    def compute_name(self) -> str:
        """What compute on this cluster is counted in."""
        return "measured device-hours"

    @property
    def extra_threads(self) -> int:
        """CPU threads beside those of the process that trains."""
        return self.decoders * self.generator_threads

    @property
    def decoders(self) -> int:
        """Processes that decode: the generators, and the evaluator if there is one."""
        return self.generators + self.evaluator


def _virtual_unless_said(written: Any) -> Any:
    """A cluster without a type is a modelled one."""
    return {"type": "virtual", **written} if isinstance(written, dict) else written


ClusterSettings = Annotated[
    Annotated[Virtual | Wall, Field(discriminator="type")],
    BeforeValidator(_virtual_unless_said),
]
