"""The generator of a scale: the built-in one, or vLLM."""

from typing import Annotated, Literal

from pydantic import Field

from scalerl.frozen import Count, Frozen, Unit


class BuiltInGenerator(Frozen):
    """The built-in generator: nothing to install, rollouts equal to the bit for a seed, and fast for small models."""

    type: Literal["torch"] = "torch"
    head_parts: Annotated[Count, Unit("parts")] = 1
    """Parts of the hidden width over which decoding sums the head's product, each part and each sum rounded to the
    precision of `logits`. 1 sums as the trainer does, so that with equal weights both have the same log-probs. With
    more the two round differently, as two engines do: hardly with an FP32 head, visibly with a BF16 head."""


class Vllm(Frozen):
    """vLLM, with weights swapped between two decode steps (arXiv 2309.06180): for models too large for the built-in
    generator.

    Sampling is by temperature alone, and behaviour log-probs are those of the sampled distribution. Evaluations are
    decoded by the built-in generator.
    """

    type: Literal["vllm"] = "vllm"
    driver: Literal["steps", "async"] | None = None
    """`steps`: in the process that decodes, one token for every sequence at a time. `async`: in a process of its own,
    which goes on while rollouts are handed over and new weights are fetched. Null is `async` on the wall clock, and
    `steps` on the virtual clock, which counts decode steps."""
    tensor_parallel: Annotated[Count, Unit("devices")] = 1
    """Devices that share the model of one generator; each has a process of its own if there are several."""
    block_size: Annotated[int, Field(ge=16, multiple_of=16), Unit("tokens")] = 32
    """Tokens in one block of the cache of keys and values; on a CPU a multiple of 32."""
    cache_tokens: Annotated[Count, Unit("tokens")] | None = None
    """Tokens whose keys and values fit into the cache; null makes room for all slots at full length. With less, a
    rollout that finds no room is preempted: its keys and values are computed again, by the weights of that moment. The
    run then warns, and says how often."""


GeneratorSettings = Annotated[BuiltInGenerator | Vllm, Field(discriminator="type")]

CPU_HEAD_SIZES = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
"""Sizes of an attention head that vLLM 0.32 can serve on a CPU: `get_supported_head_sizes` of its CPU back end."""
CPU_BLOCK = 32
"""Its blocks hold a multiple of so many tokens."""


def refuse_on_cpu(settings: Vllm, head_size: int) -> None:
    """Raises ValueError where vLLM's CPU back end cannot serve these heads or blocks: it would start and then fail."""
    if head_size not in CPU_HEAD_SIZES:
        raise ValueError(
            f"generator vllm cannot serve a model with heads of size {head_size} on a CPU; sizes that it can are "
            f"{', '.join(map(str, CPU_HEAD_SIZES))} (hidden / heads); choose another model or `generator: "
            f"{{type: torch}}`"
        )
    if settings.block_size % CPU_BLOCK:
        raise ValueError(
            f"generator.block_size {settings.block_size} cannot be served on a CPU; use a multiple of {CPU_BLOCK}"
        )


def refuse_split(settings: Vllm, *, heads: int, kv_heads: int, mlp: int) -> None:
    """Raises ValueError where the devices of one generator cannot share these layers: vLLM would start and then fail.

    Each device has equally many heads and an equal part of the feed-forward layer; of keys and values it has equally
    many heads, or one that several devices have alike.
    """
    devices = settings.tensor_parallel
    repeated = devices % kv_heads == 0  # one head of keys and values on several devices
    sizes = {"heads": heads, "units of the feed-forward layer": mlp}
    sizes |= {} if repeated else {"heads of keys and values": kv_heads}
    for name, size in sizes.items():
        if size % devices:
            raise ValueError(
                f"generator.tensor_parallel {devices}: the model's {size} {name} cannot be shared equally by {devices} "
                f"devices; use a number that divides {size}"
            )


def refuse_small_cache(settings: Vllm, positions: int) -> None:
    """Raises ValueError where the cache cannot hold one rollout with its prompt, of so many tokens."""
    least = -(-positions // settings.block_size) * settings.block_size
    if settings.cache_tokens is not None and settings.cache_tokens // settings.block_size * settings.block_size < least:
        raise ValueError(
            f"generator.cache_tokens {settings.cache_tokens} cannot hold one rollout of {positions} tokens; use at "
            f"least {least}, or null"
        )
