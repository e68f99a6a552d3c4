"""Decode steps of the built-in generator as captured graphs, against the same steps launched one by one.

Both decode the same requests with the same weights. A graph computes more rows than are active, so products may round
differently; a token whose draw falls between the two is then another one, and all after it are free to differ.
On a CPU a graph that computes again stands in for the captured one.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gpu_report.clock import seconds_of
from gpu_report.made import EndlessTokenizer, built_in, decoded, prompts_of, recipe_of
from gpu_report.results import Results
from gpu_report.setting import Setting
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.model.decode_graphs import Graph, cuda_graph
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


def computed_again(compute: Callable[[], Tensor]) -> tuple[Graph, Tensor]:
    """Stands in for a capture on a CPU."""
    graph = ComputedAgain(compute)
    return graph, graph.output


def run(setting: Setting, results: Results) -> None:
    """Decode with and without graphs, under two sets of weights; on a GPU the fastest of three more times counts."""
    model = setting.of(
        cuda=LlamaModel(hidden=1024, layers=8, heads=8, mlp=4096), cpu=LlamaModel(hidden=64, layers=2, heads=2, mlp=128)
    )
    answer, slots = setting.of(cuda=400, cpu=24), setting.of(cuda=64, cpu=6)
    precision = setting.of(cuda="mixed", cpu="fp32")
    recipe = recipe_of(setting, model, parameters=precision, generation={"thinking": "none", "answer": answer})
    prompts = prompts_of(setting.of(cuda=24, cpu=4), 20)
    weights = [
        {name: one.clone() for name, one in built_in(recipe, seed).exported_weights().items()} for seed in (0, 1)
    ]
    rollouts: dict[bool, list[list[Rollout]]] = {}
    seconds: dict[bool, float] = {}
    for graphs in (True, False):
        generator = TorchGenerator(built_in(recipe), recipe.generation, EndlessTokenizer(), slots=slots, max_prompt=20)
        cache: Any = generator._cache
        assert isinstance(cache, LlamaCache)
        if graphs:
            cache.capture_steps(cuda_graph if setting.is_cuda else computed_again)
        else:
            cache._graphs = None
        rollouts[graphs] = [decode_with(generator, one, prompts) for one in weights]
        if setting.is_cuda:
            device, decode = torch.device("cuda"), partial(decoded, generator, prompts, 4)
            seconds[graphs] = min(seconds_of(decode, device) for _ in range(3))
    tokens = sum(len(one.tokens) for one in rollouts[True][1])
    first, second = (list(zip(rollouts[True][i], rollouts[False][i], strict=True)) for i in range(2))
    results.report("decode.graphs", same_share(first), rollouts=len(first), tokens=tokens)
    results.report("decode.new_weights", same_share(second))
    results.report("decode.logprobs", float(np.max([logprob_gap(*pair) for pair in first + second])))
    if setting.is_cuda:
        results.report(
            "decode.speed",
            seconds[False] / seconds[True],
            tokens_per_s=tokens / seconds[True],
            without_graphs=tokens / seconds[False],
        )


def decode_with(generator: TorchGenerator, weights: dict[str, Tensor], prompts: list[Any]) -> list[Rollout]:
    """Rollouts of the prompts under these weights."""
    generator.set_weights(weights, generator.version + 1)
    return decoded(generator, prompts, 4)


def same_share(pairs: list[tuple[Rollout, Rollout]]) -> float:
    """Share of rollouts with equal tokens."""
    return sum(np.array_equal(one.tokens, other.tokens) for one, other in pairs) / len(pairs)


def logprob_gap(one: Rollout, other: Rollout) -> float:
    """Largest difference of a log-probability up to the first token that differs, in nats."""
    different = np.flatnonzero(one.tokens != other.tokens)
    same = slice(0, different[0] if len(different) else len(one.tokens))
    return float(np.abs(one.logprobs[same] - other.logprobs[same]).max(initial=0.0))
