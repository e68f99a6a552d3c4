"""The base of vLLM's drivers, and what they have in common.

`vllm_steps` runs vLLM in this process, one step at a time; `vllm_async` in its own process, which runs ahead."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
"""vLLM's precision, of weights and products alike, for each value of the axis `parameters`."""
HEAD_DTYPES = {"fp32": "float32", "bf16": "bfloat16"}
PROBE_NAME = "probe"
"""Name and cache salt of tokens that are only scored."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """Tokens to continue: `Ask(name="17.3.0", tokens=(8, 4, 2), most=12, salt="17.0", seed=9183520441)`."""

    name: str
    tokens: tuple[int, ...]
    """Prompt and tokens chosen so far."""
    most: int
    """Maximum number of tokens to choose; fewer if the sequence ends."""
    salt: str
    """Cached keys and values are shared only between asks with the same salt."""
    seed: int
    """Seed of everything drawn, below 2^63."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Tokens chosen for an ask since its last piece, all by the same weights."""

    name: str
    tokens: list[int]
    logprobs: list[float]
    version: int
    is_last: bool
    """True if this is the last piece of its ask."""


class PreemptionCount:
    """A stat logger for vLLM that only counts preemptions."""

    def __init__(self) -> None:
        self.count = 0

    def logger(self, *_: Any) -> "PreemptionCount":
        """Return this logger; vLLM passes its configuration and the engine's number."""
        return self

    def record(self, scheduler_stats: Any, iteration_stats: Any, **_: Any) -> None:
        """Count the preemptions of a step."""
        if iteration_stats is not None:
            self.count += iteration_stats.num_preempted_reqs

    def log_engine_initialized(self) -> None:
        """Log nothing."""

    def log(self) -> None:
        """Log nothing."""

    def record_sleep_state(self, *_: Any) -> None:
        """Do nothing: engines do not sleep here."""


class VllmEngine(ABC):
    """A driver of one engine: asks in, pieces out, new weights between two tokens."""

    def __init__(self, temperature: float, eos: tuple[int, ...]) -> None:
        self.temperature, self.eos = temperature, eos
        self.preemptions = PreemptionCount()
        """Count of preemptions so far, each a sequence that lost its place in the cache."""

    @abstractmethod
    def ask(self, ask: Ask) -> None:
        """Start an ask with the next step, or as soon as the engine has room."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Choose no more tokens for this ask; pieces already chosen may still arrive."""

    @abstractmethod
    def step(self) -> list[Piece]:
        """Pieces chosen since the last step; waits for at least one."""

    @abstractmethod
    def set_weights(self, weights: Weights, version: int, *, recompute: bool) -> None:
        """Continue with these weights; with `recompute`, also recompute keys and values."""

    @abstractmethod
    def score(self, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        """Log-probability of each token but the first given the tokens before it, at temperature 1.

        Running sequences continue meanwhile; the next step returns their tokens.
        """

    def pause(self) -> None:
        """Choose no tokens until `resume`, not even between steps."""

    def resume(self) -> None:
        """Continue after `pause`."""

    @abstractmethod
    def check(self) -> None:
        """Raises Interrupted if the engine has ended."""

    @abstractmethod
    def close(self) -> None:
        """Release memory and end the engine's processes."""


def engine_arguments(recipe: ResolvedRecipe, folder: Path, *, slots: int, positions: int) -> dict[str, Any]:
    """vLLM's `EngineArgs` for a model's folder: up to `slots` sequences of up to `positions` tokens, plus a probe."""
    settings = recipe.generator
    assert isinstance(settings, Vllm)
    is_cpu = device_of(recipe).type == "cpu"
    block = settings.block_size
    sequences = slots + 1  # one for the probe
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
        "num_gpu_blocks_override": blocks + 1,  # vLLM reserves one
        "enable_prefix_caching": True,
        "logprobs_mode": "processed_logprobs",
        "tensor_parallel_size": settings.tensor_parallel,
        "distributed_executor_backend": "uni" if settings.tensor_parallel == 1 else "mp",
        "worker_extension_cls": "scalerl.generator.vllm_worker.WeightReceiver",
        "enforce_eager": is_cpu,
        "use_tqdm_on_load": False,
    }
    # On a CPU vLLM by default asks for most of the memory; the number of blocks already sets its size.
    return arguments | ({"kv_cache_memory_bytes": 2**20} if is_cpu else {})


def refuse_unservable(recipe: ResolvedRecipe, *, head_size: int, heads: int, kv_heads: int, mlp: int) -> None:
    """Raises Rejected if vLLM is not installed or cannot serve a model of these sizes here."""
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
    """vLLM's sampling parameters: temperature only, because truncated sampling would renormalise log-probabilities."""
    module = vllm_module("sampling_params")
    return module.SamplingParams(
        temperature=temperature,
        max_tokens=ask.most,
        seed=ask.seed,
        stop_token_ids=list(eos),
        ignore_eos=True,
        logprobs=0,  # of the chosen token only
        detokenize=False,
        output_kind=module.RequestOutputKind.DELTA,
    )


def probing() -> Any:
    """vLLM's parameters for tokens that are only scored; vLLM must choose at least one more."""
    return vllm_module("sampling_params").SamplingParams(
        max_tokens=1, prompt_logprobs=0, temperature=0.0, detokenize=False
    )


def scores_of_probe(output: Any, tokens: tuple[int, ...]) -> NDArray[np.float32]:
    """Log-probability of each token but the first, from vLLM's output for a probe."""
    scores = zip(tokens[1:], output.prompt_logprobs[1:], strict=True)
    return np.array([of[token].logprob for token, of in scores], dtype=np.float32)


@contextmanager
def weights_file(weights: Weights) -> Iterator[Path]:
    """Context with the weights as a safetensors file in shared memory, for workers in other processes.

    The file has no name, so its memory is freed even if this process is killed.
    """
    descriptor = os.memfd_create("weights")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in weights.items()}))
        yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    finally:
        os.close(descriptor)
