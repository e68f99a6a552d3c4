"""The cluster of a scale: modelled devices on a virtual clock, or real processes on the wall clock."""

from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from scalerl.frozen import Frozen, Unit


class Accelerator(Frozen):
    """The accelerator modelled by the virtual clock; the defaults are one NVIDIA H100 SXM."""

    name: str = "H100 SXM"
    """Name shown beside every modelled figure."""
    memory_gb_per_s: Annotated[float, Field(ge=1e-15, le=1e9), Unit("GB/s")] = 3350.0
    """Memory bandwidth: a decode step reads the weights once, and the keys and values of every running sequence."""
    memory_gb: Annotated[float, Field(ge=1e-15, le=1e9), Unit("GB")] = 80.0
    """Memory; `platform plan` rejects what does not fit. Changes no result, so run ids do not depend on it."""
    tflops: Annotated[float, Field(ge=1e-15, le=1e9), Unit("TFLOP/s")] = 989.0
    """Peak dense BF16 rate."""
    utilisation: Annotated[float, Field(ge=1e-6, le=1), Unit("share of the peak")] = 0.4
    """Share of the peak rate that prefill and training reach."""
    link_gb_per_s: Annotated[float, Field(ge=1e-15, le=1e9), Unit("GB/s")] = 50.0
    """Bandwidth of a weight push from trainers to generators."""


class ChargedAttention(Frozen):
    """Attention takes time: decoding reads cached keys and values, and prefill and training multiply with them.

    A tiny model that stands for a large one has a much smaller attention width; these factors scale it up. Llama 3 8B
    has a width of 32 layers x 32 heads x 128 = 131,072 numbers, and caches keys and values of 32 layers x 8 heads x
    128 = 65,536 numbers of 2 bytes per token.
    """

    type: Literal["charged"] = "charged"
    width_stands_for: Annotated[float, Field(ge=1e-6, le=1e15), Unit("numbers")] | None = None
    """Charge for each number of the attention width (heads x head size, summed over layers); null is
    `parameters_stand_for` to the power 2/3, since a model r times as deep and as wide has r^3 times the parameters and
    r^2 times the width."""
    cache_stands_for: Annotated[float, Field(ge=1e-6, le=1e15), Unit("numbers")] | None = None
    """Charge for each number that a token leaves in the KV cache, 2 bytes each; null as above."""


class FreeAttention(Frozen):
    """Attention takes no time, and a decode step reads only the weights."""

    type: Literal["free"] = "free"


def _unless_said(kind: str) -> BeforeValidator:
    """Makes this the `type` of a block that has none."""
    return BeforeValidator(lambda written: {"type": kind, **written} if isinstance(written, dict) else written)


Attention = Annotated[ChargedAttention | FreeAttention, Field(discriminator="type"), _unless_said("charged")]


class Virtual(Frozen):
    """Modelled devices on a virtual clock, 4 generators per trainer (ScaleRL §2: 64 and 16 of 80 GPUs)."""

    type: Literal["virtual"] = "virtual"
    generators: Annotated[int, Field(ge=1, le=1_000_000), Unit("devices")] = 64
    """Generator devices."""
    trainers: Annotated[int, Field(ge=1, le=1_000_000), Unit("devices")] = 16
    """Trainer devices."""
    slots: Annotated[int, Field(ge=1, le=1_000_000), Unit("sequences")] = 12
    """Sequences that one generator decodes at a time."""
    device: Accelerator = Accelerator()
    """The modelled accelerator."""
    parameters_stand_for: Annotated[float, Field(ge=1, le=1e12), Unit("parameters")] = 1.0
    """Charge for each model parameter, so that a tiny model stands for a large one."""
    tokens_stand_for: Annotated[float, Field(ge=1, le=1e9), Unit("tokens")] = 1.0
    """Charge for each token, so that a short answer stands for a long one."""
    attention: Attention = ChargedAttention()
    """Cost of attention, and the size of the attention that is modelled."""
    compute_name: ClassVar[str] = "modelled GPU-hours"
    extra_threads: ClassVar[int] = 0
    """CPU threads in addition to those of the training process."""


class Wall(Frozen):
    """Real processes on this machine that train or decode; compute is measured, including idle time.

    A device is one of these processes with its threads. The scale's `threads` apply to each training process: with
    `learner: {type: torch}` the single one, which also runs the schedule, otherwise every rank of the learner.
    """

    type: Literal["wall"] = "wall"
    generators: Annotated[int, Field(ge=1, le=1_000_000), Unit("processes")] = 1
    """Generator processes."""
    slots: Annotated[int, Field(ge=1, le=1_000_000), Unit("sequences")] = 128
    """Sequences that one generator decodes at a time."""
    generator_threads: Annotated[int, Field(ge=1, le=4096), Unit("threads")] = 1
    """CPU threads of one generator, and of the evaluator."""
    evaluator: bool = False
    """true: a separate process evaluates while training continues, with as many devices as one generator. It decodes
    published weights with the recipe's generator. Training waits if two evaluations are still unfinished when the next
    is due. false: everything stops while the process that runs the schedule evaluates with the built-in generator. In
    both cases evaluation does not count as compute."""
    compute_name: ClassVar[str] = "measured device-hours"

    @property
    def extra_threads(self) -> int:
        """CPU threads in addition to those of the training process."""
        return self.decoders * self.generator_threads

    @property
    def decoders(self) -> int:
        """Number of decoding processes: generators, and the evaluator if there is one."""
        return self.generators + self.evaluator


ClusterSettings = Annotated[Virtual | Wall, Field(discriminator="type"), _unless_said("virtual")]
