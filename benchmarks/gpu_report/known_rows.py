"""Every row of the report by its id: what it measures, and the bound that the value must keep.

Bounds are on numbers without unit unless the text names one. Where a bound is our own choice and not a published figure
or a limit of the code, the text of `reference` says so.
"""

from dataclasses import dataclass

from gpu_report.bound import Bound, least, most

PARTS = (
    "device", "step", "attention", "decode", "memory", "throughput", "generation", "mismatch", "resume", "real",
)  # fmt: skip
"""Parts in the order in which they run."""
NOT_ON_A_CPU = "not on a CPU"
OWN = "our choice"
PRIME_RL = "prime-rl, 0.6 B on one H100: .11 at 16k, .27 at 65k"


@dataclass(frozen=True, kw_only=True)
class Known:
    """One row of the report."""

    id: str
    what: str
    bound: Bound | None = None
    """None if only the machine's own facts give one."""
    cpu: Bound | None = None
    """Bound on a CPU, where another one applies."""
    cuda_only: bool = False
    reference: str = ""

    @property
    def part(self) -> str:
        """The part that measures it."""
        return self.id.split(".")[0]

    def bound_on(self, *, is_cpu: bool) -> Bound:
        """The bound on this kind of device."""
        bound = (self.cpu or self.bound) if is_cpu else self.bound
        assert bound is not None, f"{self.id} has no bound of its own"
        return bound


def _step(
    name: str, what: str, loss: float, gradient: float, weights: float, *, cuda_only: bool = False
) -> list[Known]:
    """Loss, gradient and change of the weights of one comparison, as relative differences."""
    bounds = {
        "loss": ("loss", loss),
        "gradient": ("gradient after clipping", gradient),
        "weights": ("change of the weights", weights),
    }
    return [
        Known(id=f"{name}.{key}", what=f"{what}: {of}, relative difference", bound=most(value), cuda_only=cuda_only)
        for key, (of, value) in bounds.items()
    ]


def _throughput() -> list[Known]:
    """MFU of each model at each length."""
    found = []
    for model, title in (
        ("llama_0.1b", "built-in Llama, 0.1 B"),
        ("qwen3_0.1b", "Qwen3, 0.1 B"),
        ("qwen3_0.6b", "Qwen3, 0.6 B"),
    ):
        for length in ("2k", "16k"):
            is_published = (model, length) == ("qwen3_0.6b", "16k")
            found.append(
                Known(
                    id=f"throughput.{model}.{length}",
                    what=f"{title}, sequences of {length} tokens: MFU of an optimiser step",
                    bound=least(0.11 if is_published else 0.1),
                    cpu=least(0.02),
                    reference=PRIME_RL if is_published else f"{OWN}; {PRIME_RL}",
                )
            )
    return found


_ROWS: list[Known] = [
    Known(id="device.versions", what="packages whose version is too low", bound=Bound(equal="none")),
    Known(id="device.kind", what="the device that was asked for", bound=Bound(equal="as asked")),
    Known(
        id="device.matmul", what="large matrix products (BF16; FP32 on a CPU), FLOP/s", reference=".6 of the data sheet"
    ),
    Known(
        id="device.bandwidth", what="large copies, bytes read and written a second", reference=".6 of the data sheet"
    ),
    Known(
        id="device.peak_rate",
        what="peak rate that a run measures for its MFU (scalerl.cluster.peak_rate), over `device.matmul`",
        bound=Bound(least=0.7, most=1.3),
        cpu=Bound(least=0.3, most=3.0),
        reference=OWN,
    ),
    Known(id="device.memory", what="share of the memory that is free", bound=least(0.9), cuda_only=True, reference=OWN),
    Known(
        id="device.capability",
        what="compute capability",
        bound=least(8.0),
        cuda_only=True,
        reference="BF16 needs 8.0",
    ),
    *_step("step.fp32", "built-in model, FP32, this device against the CPU", 1e-5, 1e-4, 0.02, cuda_only=True),
    *_step("step.packed", "built-in model, FP32, packed with shared prompts against padded", 1e-5, 1e-4, 0.02),
    *_step("step.bf16", "built-in model, BF16 products against FP32", 0.03, 0.05, 0.3),
    *_step("step.fp16", "built-in model, FP16 products and loss scale against FP32", 0.01, 0.01, 0.15),
    *_step("step.qwen3.fp32", "Qwen3, FP32, this device against the CPU", 1e-5, 1e-4, 0.02, cuda_only=True),
    *_step("step.qwen3.packed", "Qwen3, FP32, packed with shared prompts against padded", 1e-5, 1e-4, 0.02),
    *_step("step.qwen3.bf16", "Qwen3, BF16 products against FP32", 0.03, 0.05, 0.3),
    Known(
        id="step.waits",
        what="times that the host waits in one step (columns, norm of the gradient)",
        bound=most(2),
        cuda_only=True,
        reference="docs/gpus.md",
    ),
    Known(
        id="attention.forward",
        what="FlexAttention against the whole mask: largest difference of a log-probability, nats",
        bound=most(1e-4),
        cpu=most(1e-5),
    ),
    Known(
        id="attention.window",
        what="the same with a sliding window of 20 positions, nats",
        bound=most(1e-4),
        cpu=most(1e-5),
    ),
    Known(
        id="attention.gradient",
        what="gradient in FP32: largest relative difference over layouts",
        bound=most(1e-4),
        cuda_only=True,
    ),
    Known(id="attention.bf16", what="gradient in BF16: relative difference", bound=most(0.05), cuda_only=True),
    Known(
        id="attention.graphs",
        what="graphs compiled for 12 layouts of different lengths",
        bound=most(6),
        cuda_only=True,
        reference="past 8 Dynamo falls back to the uncompiled form",
    ),
    Known(
        id="attention.speed",
        what="16k packed tokens, BF16: time by the whole mask over time by blocks",
        bound=least(1.0),
        cuda_only=True,
    ),
    Known(
        id="attention.memory",
        what="16k packed tokens, BF16: memory by blocks over memory by the whole mask",
        bound=most(1.0),
        cuda_only=True,
    ),
    Known(
        id="decode.graphs",
        what="rollouts with equal tokens in FP32, decoded as graphs and without",
        bound=least(0.95),
        cpu=least(1.0),
        reference="a draw may fall between two roundings",
    ),
    Known(
        id="decode.new_weights",
        what="the same after new weights, which captured graphs must read",
        bound=least(0.95),
        cpu=least(1.0),
    ),
    Known(
        id="decode.logprobs",
        what="largest difference of a log-probability up to the first other token in FP32, nats",
        bound=most(1e-3),
        cpu=most(1e-4),
    ),
    Known(
        id="decode.mixed",
        what="the same in BF16, root mean square",
        bound=most(0.01),
        cuda_only=True,
        reference=f"{OWN}: no more than generator and learner differ by",
    ),
    Known(id="decode.speed", what="speed as graphs over speed without", bound=least(1.0), cuda_only=True),
    Known(
        id="memory.trainer",
        what="peak of two optimiser steps over the forecast",
        bound=Bound(least=0.6, most=1.11),
        cpu=Bound(least=0.4, most=1.6),
        reference="the plan keeps a tenth of the device free; on a CPU libraries keep more",
    ),
    Known(
        id="memory.trainer_recomputing",
        what="the same with gradient checkpointing",
        bound=Bound(least=0.6, most=1.11),
        cpu=Bound(least=0.4, most=1.6),
    ),
    Known(
        id="memory.generator",
        what="peak of the built-in generator, all slots at full length, over the forecast",
        bound=Bound(least=0.6, most=1.11),
        cpu=Bound(least=0.4, most=2.5),
    ),
    Known(
        id="memory.context",
        what="bytes of the device that PyTorch did not reserve",
        bound=most(3e9),
        cuda_only=True,
        reference="scalerl.memory.per_device.CONTEXT",
    ),
    *_throughput(),
    Known(
        id="throughput.cost_model",
        what="built-in Llama, 2k tokens: seconds of a step over the cost model's",
        bound=Bound(least=0.5, most=2.0),
        cuda_only=True,
        reference="the model says .4 of the peak; the factor is our choice",
    ),
    Known(
        id="generation.roofline",
        what="built-in generator: tokens a second over those if only weights and cache were read",
        bound=least(0.05),
        cpu=least(0.01),
        reference=OWN,
    ),
    Known(
        id="generation.over_transformers",
        what="built-in generator: speed over that of transformers' generate",
        bound=least(1.0),
        cpu=least(0.5),
        reference="on a CPU also a busy machine",
    ),
    Known(
        id="generation.over_vllm",
        what="built-in generator: speed over vLLM's",
        bound=least(0.2),
        reference=f"{OWN}: below, a study should use vLLM",
    ),
    Known(
        id="generation.new_weights",
        what="built-in generator: seconds to take new weights",
        bound=most(1.0),
        reference=OWN,
    ),
    Known(id="generation.new_weights_vllm", what="vLLM: seconds to take new weights", bound=most(10.0), reference=OWN),
    Known(id="mismatch.fp32", what="built-in generator, FP32: k3 KL, nats a token", bound=most(1e-3), cpu=most(1e-6)),
    Known(id="mismatch.mixed", what="built-in generator, BF16 with FP32 head: k3 KL, nats a token", bound=most(1e-3)),
    Known(id="mismatch.fp16", what="built-in generator, FP16 with FP32 head: k3 KL, nats a token", bound=most(1e-3)),
    Known(
        id="mismatch.bf16_head",
        what="built-in generator, BF16 with BF16 head: k3 KL, nats a token",
        bound=most(1e-2),
        reference=OWN,
    ),
    Known(
        id="mismatch.qwen3", what="Qwen3 of transformers, BF16 with FP32 head: k3 KL, nats a token", bound=most(1e-3)
    ),
    Known(
        id="mismatch.vllm",
        what="vLLM, BF16 (FP32 on a CPU) with FP32 head: k3 KL, nats a token",
        bound=most(1e-3),
    ),
    Known(
        id="mismatch.vllm_versions",
        what="vLLM that runs ahead, new weights midway: k3 KL of tokens that name the first weights, nats a token",
        bound=most(1e-3),
        cuda_only=True,
    ),
    Known(id="resume.done", what="state of a run begun on the CPU and ended here", bound=Bound(equal="done")),
    Known(id="resume.steps", what="optimiser steps taken here", bound=least(1)),
    Known(id="resume.warned", what="warnings that the device has changed", bound=least(1), cuda_only=True),
    Known(id="resume.log", what="gaps and repetitions in the log's steps", bound=most(0)),
    Known(
        id="resume.first_step",
        what="entropy, gradient norm and reward of the first step here against a run that stayed on the CPU: "
        "largest relative difference",
        bound=most(1e-3),
        cpu=most(0),
    ),
    Known(id="real.steps", what="optimiser steps taken in the time", bound=least(3)),
    Known(id="real.finite", what="steps whose loss or gradient was not finite", bound=most(0)),
    Known(id="real.mismatch", what="mean |generator - learner| at lag 0, nats", bound=most(0.02), reference=OWN),
    Known(
        id="real.pass_rate",
        what="pass rate of the last third of the steps less that of the first third",
        bound=least(-0.1),
        reference=f"{OWN}: minutes of training do no harm",
    ),
    Known(
        id="real.memory",
        what="peak over the forecast of the run's process",
        bound=Bound(least=0.4, most=1.11),
        cuda_only=True,
    ),
]

KNOWN = {row.id: row for row in _ROWS}
"""All rows by id."""


def rows_of(part: str) -> list[str]:
    """Ids of a part's rows, in order."""
    return [name for name in KNOWN if name.startswith(f"{part}.")]
