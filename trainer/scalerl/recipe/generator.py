"""The generator of a scale: the built-in one, or vLLM."""

from typing import Annotated, Literal

from pydantic import Field

from scalerl.frozen import Count, Frozen, Unit


class BuiltInGenerator(Frozen):
    """The built-in generator: nothing to install, bit-identical rollouts for a seed, and fast for small models."""

    type: Literal["torch"] = "torch"
    head_parts: Annotated[Count, Unit("parts")] = 1
    """Parts of the hidden width over which decoding sums the head's product; each part and each sum is rounded to the
    precision of `logits`. With 1, generator and trainer sum alike and have equal log-probabilities for equal weights.
    With more, they round differently, as two engines do: hardly with an FP32 head, visibly with a BF16 head."""
    products: Literal["float32", "bfloat16"] = "float32"
    """`bfloat16` rounds both factors of every product before the head to BF16 while rollouts are generated, and sums in
    FP32, as tensor cores do. The trainer keeps FP32, so that both give different log-probabilities for equal weights,
    as an engine for inference and one for training do. Evaluations decode the trainer's own weights with its own
    products: they measure the policy that is trained, not the one that generates."""


class Vllm(Frozen):
    """vLLM (arXiv 2309.06180) with weights swapped between decode steps: for models too large for the built-in
    generator.

    Sampling uses only a temperature, and behaviour log-probabilities are those of the sampled distribution. Evaluations
    use the built-in generator.
    """

    type: Literal["vllm"] = "vllm"
    driver: Literal["steps", "async"] | None = None
    """`steps`: vLLM in the decoding process, one token per sequence at a time. `async`: vLLM in its own process, which
    continues while rollouts are handed over and new weights are fetched. Null is `async` on the wall clock, and `steps`
    on the virtual clock, which counts decode steps."""
    tensor_parallel: Annotated[Count, Unit("devices")] = 1
    """Devices that share the model of one generator, with one process per device if there are several."""
    block_size: Annotated[int, Field(ge=16, multiple_of=16), Unit("tokens")] = 32
    """Tokens per block of the KV cache; on a CPU a multiple of 32."""
    cache_tokens: Annotated[Count, Unit("tokens")] | None = None
    """Tokens that fit into the KV cache; null makes room for all slots at full length. With a smaller cache, a rollout
    without room is preempted, and its keys and values are recomputed with the weights of that moment. The run then
    warns and gives the number of preemptions."""


GeneratorSettings = Annotated[BuiltInGenerator | Vllm, Field(discriminator="type")]

CPU_HEAD_SIZES = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
"""Head sizes that vLLM 0.32 supports on a CPU: `get_supported_head_sizes` of its CPU back end."""
CPU_BLOCK = 32
"""On a CPU the tokens per block must be a multiple of this."""


def refuse_on_cpu(settings: Vllm, head_size: int) -> None:
    """Raises ValueError if vLLM's CPU back end, which would fail only after starting, cannot serve these sizes."""
    if head_size not in CPU_HEAD_SIZES:
        raise ValueError(
            f"generator vllm cannot serve a model with heads of size {head_size} on a CPU; supported sizes are "
            f"{', '.join(map(str, CPU_HEAD_SIZES))} (hidden / heads); choose another model, or set `generator: "
            f"{{type: torch}}`"
        )
    if settings.block_size % CPU_BLOCK:
        raise ValueError(
            f"generator.block_size {settings.block_size} is not supported on a CPU; use a multiple of {CPU_BLOCK}"
        )


def refuse_split(settings: Vllm, *, heads: int, kv_heads: int, mlp: int) -> None:
    """Raises ValueError if vLLM, which would fail only after starting, cannot split these layers over the devices.

    Each device has the same number of heads and an equal part of the feed-forward layer; key-value heads are divided
    equally, or one is repeated on several devices.
    """
    devices = settings.tensor_parallel
    repeated = devices % kv_heads == 0  # one key-value head on several devices
    sizes = {"heads": heads, "units of the feed-forward layer": mlp}
    sizes |= {} if repeated else {"key-value heads": kv_heads}
    for name, size in sizes.items():
        if size % devices:
            raise ValueError(
                f"generator.tensor_parallel {devices}: the model's {size} {name} cannot be divided equally among "
                f"{devices} devices; use a divisor of {size}"
            )


def refuse_small_cache(settings: Vllm, positions: int) -> None:
    """Raises ValueError if the cache cannot hold one rollout with its prompt of this many tokens."""
    least = -(-positions // settings.block_size) * settings.block_size
    if settings.cache_tokens is not None and settings.cache_tokens // settings.block_size * settings.block_size < least:
        raise ValueError(
            f"generator.cache_tokens {settings.cache_tokens} cannot hold one rollout of {positions} tokens; use at "
            f"least {least}, or null"
        )
