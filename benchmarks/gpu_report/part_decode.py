"""Decode steps of the built-in generator as captured graphs, against the same steps launched one by one.

Both decode the same requests with the same weights. A graph computes more rows than are active, so products round
differently; a token whose draw falls between the two is then another one, and all after it are free to differ. In BF16
that happens in nearly every rollout of 400 tokens, so rollouts are compared in FP32.
On a CPU a graph that computes again stands in for the captured one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_report.clock import seconds_of
from gpu_report.made import EndlessTokenizer, built_in, decoded, prompts_of, recipe_of
from gpu_report.results import Results
from gpu_report.setting import Setting
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.model.decode_graphs import Replay, cuda_graph
from scalerl.model.llama import LlamaCache
from scalerl.recipe import LlamaModel
from scalerl.rollout import Rollout


class ComputedAgain:
    """A graph of the CPU: a replay computes, and writes where the capture's output lies."""

    def __init__(self, compute: Callable[[], Tensor]) -> None:
        self.compute, self.output = compute, compute()

    def replay(self) -> None:
        """Compute the output again in its place."""
        self.output.copy_(self.compute())


def computed_again(compute: Callable[[], Tensor]) -> tuple[Replay, Tensor]:
    """Stands in for a capture on a CPU."""
    graph = ComputedAgain(compute)
    return graph.replay, graph.output


def run(setting: Setting, results: Results) -> None:
    """Decode with and without graphs, under two sets of weights: in FP32, whose rounding a draw hardly ever sees, and
    on a GPU in BF16, where the fastest of three more times counts."""
    exact = both_ways(setting, "fp32", rounds=0)
    first, second = pairs_of(exact, 0), pairs_of(exact, 1)
    results.report("decode.graphs", same_share(first), rollouts=len(first), tokens=tokens_of(first))
    results.report("decode.new_weights", same_share(second))
    results.report("decode.logprobs", float(np.max([logprob_gaps(*pair).max(initial=0.0) for pair in first + second])))
    if not setting.is_cuda:
        return
    decoded_twice = both_ways(setting, "mixed", rounds=3)
    gaps = np.concatenate([logprob_gaps(*pair) for pair in pairs_of(decoded_twice, 0)])
    results.report("decode.mixed", float(np.sqrt(np.mean(gaps**2))), tokens=len(gaps), largest=float(gaps.max()))
    tokens, (seconds, without) = tokens_of(pairs_of(decoded_twice, 0)), (one.seconds for one in decoded_twice)
    results.report("decode.speed", without / seconds, tokens_per_s=tokens / seconds, without_graphs=tokens / without)


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """Rollouts under each set of weights, and the fastest of some more decodings; infinite without any."""

    rollouts: list[list[Rollout]]
    seconds: float


def both_ways(setting: Setting, precision: str, *, rounds: int) -> tuple[Decoded, Decoded]:
    """Decoded as graphs, and without."""
    model = setting.of(
        cuda=LlamaModel(hidden=1024, layers=8, heads=8, mlp=4096), cpu=LlamaModel(hidden=64, layers=2, heads=2, mlp=128)
    )
    answer, slots = setting.of(cuda=400, cpu=24), setting.of(cuda=64, cpu=6)
    recipe = recipe_of(setting, model, parameters=precision, generation={"thinking": "none", "answer": answer})
    prompts = prompts_of(setting.of(cuda=24, cpu=4), 20)
    weights = [
        {name: one.clone() for name, one in built_in(recipe, seed).exported_weights().items()} for seed in (0, 1)
    ]

    def of(*, graphs: bool) -> Decoded:
        generator = TorchGenerator(built_in(recipe), recipe.generation, EndlessTokenizer(), slots=slots, max_prompt=20)
        cache: Any = generator._cache
        assert isinstance(cache, LlamaCache)
        if graphs:
            cache.capture_steps(cuda_graph if setting.is_cuda else computed_again)
        else:
            cache._graphs = None
        rollouts = [decode_with(generator, one, prompts) for one in weights]
        decode, device = partial(decoded, generator, prompts, 4), torch.device(setting.device)
        seconds = min((seconds_of(decode, device) for _ in range(rounds)), default=math.inf)
        return Decoded(rollouts=rollouts, seconds=seconds)

    return of(graphs=True), of(graphs=False)


def pairs_of(ways: tuple[Decoded, Decoded], number: int) -> list[tuple[Rollout, Rollout]]:
    """Each rollout as graphs and without, under one set of weights."""
    return list(zip(*(one.rollouts[number] for one in ways), strict=True))


def tokens_of(pairs: list[tuple[Rollout, Rollout]]) -> int:
    """Tokens decoded as graphs."""
    return sum(len(one.tokens) for one, _ in pairs)


def decode_with(generator: TorchGenerator, weights: dict[str, Tensor], prompts: list[Any]) -> list[Rollout]:
    """Rollouts of the prompts under these weights."""
    generator.set_weights(weights, generator.version + 1)
    return decoded(generator, prompts, 4)


def same_share(pairs: list[tuple[Rollout, Rollout]]) -> float:
    """Share of rollouts with equal tokens."""
    return sum(np.array_equal(one.tokens, other.tokens) for one, other in pairs) / len(pairs)


def logprob_gaps(one: Rollout, other: Rollout) -> NDArray[np.float32]:
    """Differences of log-probabilities up to the first token that differs, in nats."""
    different = np.flatnonzero(one.tokens != other.tokens)
    same = slice(0, different[0] if len(different) else len(one.tokens))
    return np.abs(one.logprobs[same] - other.logprobs[same])
