"""The parts of a scale: model, tasks, sizes, lengths, optimiser, cluster, evaluation and compute unit."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from scalerl.frozen import Count, Fraction, Frozen, Positive, Rate, Unit
from scalerl.recipe.adapter import Adapter, NoAdapter
from scalerl.recipe.cluster import ClusterSettings, Virtual
from scalerl.recipe.generator import BuiltInGenerator, GeneratorSettings
from scalerl.recipe.learner import LearnerSettings, TorchSettings
from scalerl.recipe.models import LlamaModel, Model
from scalerl.recipe.tasks import AnyTask, Downstream, KSmallest


class WarmStart(Frozen):
    """Supervised steps on demonstrations before RL; trained once per scale and seed, then shared."""

    steps: Annotated[int, Field(ge=0, le=10**9), Unit("optimiser steps")] = 300
    """Optimiser steps; without a `warm_start` block a pretrained model gets none."""
    batch: Annotated[int, Field(ge=1, le=1_000_000), Unit("demonstrations")] = 128
    """Demonstrations per step."""
    learning_rate: Rate = 2.5e-3
    """Peak AdamW learning rate, which decays linearly to a tenth."""
    noise: Annotated[Fraction, Unit("probability")] = 0.1
    """Probability that a symbol of a demonstrated thought is replaced by another."""


class BatchSize(Frozen):
    """Rollouts per optimiser step = prompts x generations (ScaleRL §2: 48 x 16)."""

    prompts: Annotated[int, Field(ge=1, le=1_000_000), Unit("prompts")] = 48
    """Prompts per optimiser step, each with one group of rollouts."""
    generations: Annotated[int, Field(ge=2, le=100_000), Unit("rollouts")] = 16
    """Rollouts per prompt."""


class Generation(Frozen):
    """Token limits and sampling (ScaleRL §2: 12k thinking + 2k answer)."""

    thinking: Annotated[int, Field(ge=1, le=10_000_000), Unit("tokens")] | Literal["none"] = 12288
    """Thinking budget in tokens, without the end-of-thinking phrase. The prompt ends with `<think>`, and the answer is
    what follows the first `</think>` in the text of the response, whichever tokens write it; a response without
    `</think>` has no answer. none: the prompt opens no thinking, and the whole response is the answer. Then `answer` is
    the only limit, longer responses are truncated, and length control `interruption` is rejected."""
    answer: Annotated[int, Field(ge=1, le=10_000_000), Unit("tokens")] = 2048
    """Answer budget in tokens, including the end of sequence; longer answers are truncated."""
    temperature: Annotated[float, Field(ge=0.001, le=1000)] = 1.0
    """Sampling temperature; behaviour log-probabilities are those of the tempered distribution."""

    @property
    def max_tokens(self) -> int:
        """Maximum number of tokens in one rollout: thinking, the end-of-thinking token, and the answer."""
        return self.answer if self.thinking == "none" else self.thinking + 1 + self.answer

    @property
    def thinks(self) -> bool:
        """True if a response thinks before it answers."""
        return self.thinking != "none"


class ConstantRate(Frozen):
    """Keeps the learning rate constant after warm-up (ScaleRL A.3)."""

    type: Literal["constant"] = "constant"


class Decay(Frozen):
    """Settings of every decaying schedule."""

    horizon: Annotated[Positive, Unit("see `unit`")] = 1.0
    """End of the decay. Part of a run's identity: a run with another horizon is a new run, not an extension."""
    unit: Literal["compute", "steps"] = "compute"
    """Unit of `horizon`: compute in the scale's unit, like a sweep's budget, or optimiser steps."""
    final: Annotated[float, Field(ge=0, lt=1), Unit("share of the peak")] = 0.0
    """Share of the peak learning rate from the horizon on."""


class CosineDecay(Decay):
    """Half a cosine from the peak to its final share (SGDR, arXiv 1608.03983), then constant."""

    type: Literal["cosine"] = "cosine"


class LinearDecay(Decay):
    """A straight line from the peak to its final share, then constant."""

    type: Literal["linear"] = "linear"


Schedule = Annotated[ConstantRate | CosineDecay | LinearDecay, Field(discriminator="type")]


Layout = Literal["none", "sequences", "prompts"]


class Optimiser(Frozen):
    """AdamW with warm-up and a learning-rate schedule (ScaleRL A.3: constant)."""

    learning_rate: Rate = 5e-7
    """Peak learning rate, reached after warm-up."""
    warmup_steps: Annotated[int, Field(ge=0, le=10**9), Unit("optimiser steps")] = 100
    """Steps of linear warm-up, which multiplies the schedule."""
    schedule: Schedule = ConstantRate()
    """Decay of the learning rate from its peak."""
    beta1: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """First-moment decay."""
    beta2: Annotated[float, Field(ge=0, lt=1)] = 0.95
    """Second-moment decay."""
    eps: Annotated[float, Field(ge=1e-30, le=1)] = 1e-15
    """Number added to the root of the second moment."""
    weight_decay: Annotated[float, Field(ge=0, le=1000)] = 0.01
    """Decoupled weight decay."""
    max_grad_norm: Annotated[Positive, Unit("gradient norm")] | None = 1.0
    """Norm to which larger gradients are scaled down; null turns clipping off."""
    micro_batch_tokens: Annotated[Count, Unit("tokens")] = 2048
    """Tokens in one forward and backward pass, including padding; gradients accumulate over the whole batch."""
    packing: Layout | None = None
    """Layout of the sequences in a pass. none pads each to the longest. sequences concatenates them, and none attends
    to another. prompts also computes each prompt only once for all of its rollouts in the pass. null is prompts, or
    sequences for a model of type moe or with a router loss, whose balance is measured by sequence. Gradients are equal
    up to rounding, and the virtual clock charges the same."""
    gradient_checkpointing: bool = False
    """Recompute each block's activations in the backward pass instead of keeping them: a third more work, but memory
    for one block instead of all. The virtual clock does not charge the extra work."""

    @model_validator(mode="after")
    def _decays_after_warm_up(self) -> Self:
        schedule = self.schedule
        if schedule.type != "constant" and schedule.unit == "steps" and schedule.horizon <= self.warmup_steps:
            raise ValueError(
                f"schedule.horizon {schedule.horizon:g} steps must come after warm-up, which takes {self.warmup_steps}"
            )
        return self


class Evaluation(Frozen):
    """Held-out pass rate at a fixed compute interval (ScaleRL A.5: 1,000 prompts x 16, every 100 steps)."""

    every: Annotated[float, Field(ge=1e-9, le=1e9), Unit("compute units")] = 0.025
    """Interval in compute units; step 0 is always evaluated."""
    samples: Annotated[int, Field(ge=1, le=100_000), Unit("rollouts per prompt")] = 16
    """Rollouts per held-out prompt."""
    downstream: tuple[Downstream, ...] = ()
    """Task files that are also measured, and never trained on."""


def _start_of(scale: dict[str, Any]) -> WarmStart:
    """Default warm start: none for a pretrained model."""
    model = scale.get("model")
    return WarmStart(steps=0) if model is not None and model.type == "pretrained" else WarmStart()


class Scale(Frozen):
    """Model, tasks, sizes, lengths, optimiser, cluster, evaluation and compute unit."""

    model: Model = LlamaModel()
    """The policy."""
    adapter: Adapter = NoAdapter()
    """The part of the policy that is trained: all of it, or an adapter."""
    tasks: Annotated[tuple[AnyTask, ...], Field(min_length=1)] = (KSmallest(),)
    """Tasks to train on and evaluate; several make a mix."""
    warm_start: WarmStart = Field(default_factory=_start_of)
    """Supervised start."""
    batch: BatchSize = BatchSize()
    """Rollouts per optimiser step."""
    generation: Generation = Generation()
    """Token limits and sampling."""
    optimiser: Optimiser = Optimiser()
    """AdamW settings."""
    cluster: ClusterSettings = Virtual()
    """Devices of generators and trainers: modelled ones (the default) or processes on this machine."""
    generator: GeneratorSettings = BuiltInGenerator()
    """Generator of rollouts: the built-in one, or vLLM."""
    learner: LearnerSettings = TorchSettings()
    """Placement of the trained network and its optimiser."""
    evaluation: Evaluation = Evaluation()
    """Interval and size of evaluations."""
    compute_unit_gpu_hours: Annotated[float, Field(ge=1e-9, le=1e12), Unit("GPU-hours")] = 16000.0
    """One unit of compute of a sweep's budget: modelled GPU-hours, or measured device-hours on the wall clock."""
    threads: Annotated[int, Field(ge=1, le=4096), Unit("threads")] = 1
    """CPU threads of the training process; on the virtual clock, of the whole run. Results on the virtual clock are
    bit-identical for the same number of threads and kind of processor."""
    device: Literal["cpu", "cuda"] | None = None
    """Device for training and decoding, by PyTorch's name; null is `cuda` if PyTorch sees a GPU, else `cpu`. Changes
    results only by rounding, so run ids do not depend on it; the run's log names the device used."""
    checkpoint_every_s: Annotated[float, Field(ge=0, le=1e9), Unit("seconds")] = 15.0
    """Minimum wall-clock time between two checkpoints, which bounds the work that a crash can cost; 0 writes one after
    every step. Checkpoints of a large model are further apart, so that writing takes at most 5 % of the time. Changes
    no result, so run ids do not depend on it."""

    @model_validator(mode="after")
    def _tasks_told_apart(self) -> Self:
        titles = [task.title for task in (*self.tasks, *self.evaluation.downstream)]
        for title in titles:
            if titles.count(title) > 1:
                raise ValueError(
                    f"tasks: two tasks are called {title!r}; give each its own `name`, including downstream files"
                )
        return self

    @model_validator(mode="after")
    def _weights_have_effect(self) -> Self:
        weighted = [task for task in self.tasks if task.weight is not None]
        if weighted and len(self.tasks) == 1:
            raise ValueError("tasks: weight has no effect on the only task; remove it")
        if weighted and len(weighted) < len(self.tasks):
            lacking = next(task.title for task in self.tasks if task.weight is None)
            raise ValueError(f"tasks: {lacking!r} has no weight but others do; give every task a weight, or none")
        return self
