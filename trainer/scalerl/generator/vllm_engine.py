"""What the generator asks of vLLM, whatever drives it: `vllm_steps` one step at a time, in this process, `vllm_async`
in a process of its own that runs ahead."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import save

from scalerl.errors import Rejected
from scalerl.generator.vllm_import import vllm_module
from scalerl.model.device import device_of
from scalerl.recipe import ResolvedRecipe, Vllm
from scalerl.recipe.generator import refuse_on_cpu, refuse_small_cache, refuse_split
from scalerl.weights.hugging_face import Weights

VLLM_DTYPES = {"fp32": "float32", "mixed": "bfloat16", "bf16": "bfloat16", "fp16": "float16"}
"""vLLM has one precision for weights and products, by the axis `parameters`."""
HEAD_DTYPES = {"fp32": "float32", "bf16": "bfloat16"}
PROBE_NAME = "probe"
"""Name and salt of the tokens that are only scored."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """Tokens to go on from: `Ask(name="17.3.0", tokens=(8, 4, 2), most=12, salt="17.0", seed=9183520441)`."""

    name: str
    tokens: tuple[int, ...]
    """The prompt, and what has been chosen so far."""
    most: int
    """Tokens to choose; fewer where the sequence ends."""
    salt: str
    """Cached keys and values are shared between asks of one salt only."""
    seed: int
    """Of all that is drawn, below 2^63."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What was chosen for an ask since the last piece, by one set of weights."""

    name: str
    tokens: list[int]
    logprobs: list[float]
    version: int
    is_last: bool
    """Nothing more comes for this ask."""


class VllmEngine(Protocol):
    """One engine: asks in, pieces out, new weights between two tokens."""

    @property
    def preemptions(self) -> int:
        """How often a sequence lost its place in the cache."""
        ...

    def ask(self, ask: Ask) -> None:
        """Begin it with the next step."""

    def drop(self, name: str) -> None:
        """Choose no more tokens for this ask; pieces of it may still come."""

    def step(self) -> list[Piece]:
        """What has been chosen since the last step."""
        ...

    def set_weights(self, weights: Weights, version: int, *, recompute: bool) -> None:
        """Go on with these weights; `recompute`: with keys and values computed by them too."""

    def score(self, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        """Log-probability of each token but the first given those before it, at temperature 1."""
        ...

    def pause(self) -> None:
        """Choose no token until `resume`, also between two steps."""

    def resume(self) -> None:
        """Go on."""

    def check(self) -> None:
        """Raises Interrupted where the engine has ended."""

    def close(self) -> None:
        """Release its memory and end its processes."""


def engine_arguments(recipe: ResolvedRecipe, folder: Path, *, slots: int, positions: int) -> dict[str, Any]:
    """vLLM's `EngineArgs` for a model's folder: up to `slots` sequences of up to `positions` tokens, and a probe."""
    settings = recipe.generator
    assert isinstance(settings, Vllm)
    is_cpu = device_of(recipe).type == "cpu"
    block = settings.block_size
    sequences = slots + 1  # the probe's
    blocks_of_one = -(-positions // block)
    refuse_small_cache(settings, positions)
    blocks = sequences * blocks_of_one if settings.cache_tokens is None else settings.cache_tokens // block
    arguments = {
        "model": str(folder),
        "skip_tokenizer_init": True,
        "dtype": VLLM_DTYPES[recipe.parameters],
        "hf_overrides": {"head_dtype": HEAD_DTYPES[recipe.logits]},
        "max_model_len": positions,
        "max_num_seqs": sequences,
        "max_num_batched_tokens": max(8192, positions),
        "block_size": block,
        "num_gpu_blocks_override": blocks + 1,  # vLLM keeps one for itself
        "enable_prefix_caching": True,
        "logprobs_mode": "processed_logprobs",
        "tensor_parallel_size": settings.tensor_parallel,
        "distributed_executor_backend": "uni" if settings.tensor_parallel == 1 else "mp",
        "worker_extension_cls": "scalerl.generator.vllm_worker.WeightReceiver",
        "enforce_eager": is_cpu,
        "use_tqdm_on_load": False,
    }
    # On a CPU vLLM would otherwise ask for most of the machine's memory; how much it takes is said in blocks.
    return arguments | ({"kv_cache_memory_bytes": 2**20} if is_cpu else {})


def refuse_unservable(recipe: ResolvedRecipe, *, head_size: int, heads: int, kv_heads: int, mlp: int) -> None:
    """Raises Rejected where vLLM cannot serve a model of these sizes here, or is not installed."""
    settings = recipe.generator
    if isinstance(settings, Vllm):
        vllm_module("version")
        try:
            refuse_split(settings, heads=heads, kv_heads=kv_heads, mlp=mlp)
            if device_of(recipe).type == "cpu":
                refuse_on_cpu(settings, head_size)
        except ValueError as error:
            raise Rejected(str(error)) from None


def sampling(ask: Ask, temperature: float, eos: tuple[int, ...]) -> Any:
    """vLLM's parameters: temperature alone, because truncated sampling would renormalise the log-probs."""
    module = vllm_module("sampling_params")
    return module.SamplingParams(
        temperature=temperature,
        max_tokens=ask.most,
        seed=ask.seed,
        stop_token_ids=list(eos),
        ignore_eos=True,
        logprobs=0,  # of the chosen token alone
        detokenize=False,
        output_kind=module.RequestOutputKind.DELTA,
    )


def probing() -> Any:
    """vLLM's parameters of tokens that are only scored; it chooses at least one more."""
    return vllm_module("sampling_params").SamplingParams(
        max_tokens=1, prompt_logprobs=0, temperature=0.0, detokenize=False
    )


def scores_of_probe(output: Any, tokens: tuple[int, ...]) -> NDArray[np.float32]:
    """Of each token but the first, from what vLLM made of a probe."""
    scores = zip(tokens[1:], output.prompt_logprobs[1:], strict=True)
    return np.array([of[token].logprob for token, of in scores], dtype=np.float32)


@contextmanager
def weights_file(weights: Weights) -> Iterator[Path]:
    """The weights as a safetensors file in shared memory, for workers that are processes of their own.

    The file has no name that would hold its memory after this process was killed.
    """
    descriptor = os.memfd_create("weights")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in weights.items()}))
        yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    finally:
        os.close(descriptor)


class PreemptionCount:
    """A stat logger of vLLM that only counts preemptions."""

    def __init__(self) -> None:
        self.count = 0

    def logger(self, *_: Any) -> "PreemptionCount":
        """Itself, for vLLM's configuration and number of the engine."""
        return self

    def record(self, scheduler_stats: Any, iteration_stats: Any, **_: Any) -> None:
        """After each step."""
        if iteration_stats is not None:
            self.count += iteration_stats.num_preempted_reqs

    def log_engine_initialized(self) -> None:
        """Nothing is written."""

    def log(self) -> None:
        """Nothing is written."""

    def record_sleep_state(self, *_: Any) -> None:
        """Engines do not sleep here."""
