"""Attention by blocks (FlexAttention) against attention by the whole mask, in the same model on the same device.

Rows are packed as in training: sequences of uneven length, prompts that rollouts share, and a sliding window. On a CPU
FlexAttention runs uncompiled and has no gradient.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import MistralConfig

from gpu_report.clock import median_seconds, peak_bytes
from gpu_report.made import of_config, qwen3, recipe_of
from gpu_report.part_step import distance, flat
from gpu_report.results import Results
from gpu_report.setting import Setting
from scalerl.model.attention import BY_BLOCKS
from scalerl.model.packing import Packing
from scalerl.model.policy import Policy
from scalerl.model.transformers_policy import TransformersPolicy
from scalerl.recipe import LlamaModel

WHOLE = "sdpa"
VOCABULARY = 512
LAYOUTS = 12
"""Layouts of different lengths; one graph for each would pass Dynamo's limit of 8."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Tokens [B, T] on the device and their packing."""

    tokens: Tensor
    packing: Packing


def run(setting: Setting, results: Results) -> None:
    """Compare forward passes, and on a GPU gradients, number of graphs, time and memory."""
    sizes: Any = setting.of(
        cuda={"hidden": 512, "layers": 4, "heads": 8, "mlp": 1024, "head_size": 64},
        cpu={"hidden": 32, "layers": 2, "heads": 4, "mlp": 48, "head_size": 8},
    )
    recipe = recipe_of(setting, LlamaModel())
    policy = of_config(qwen3(**sizes, vocabulary=VOCABULARY), recipe, head=4.0)
    longest = setting.of(cuda=700, cpu=90)
    layouts = [drawn(seed, longest, setting) for seed in range(setting.of(cuda=LAYOUTS, cpu=3))]
    began = time.perf_counter()
    results.report(
        "attention.forward", forward_gap(policy, layouts), compiling_and_passes_s=time.perf_counter() - began
    )
    windowed = of_config(mistral(sizes), recipe, head=4.0)
    results.report("attention.window", forward_gap(windowed, layouts))
    if not setting.is_cuda:
        return
    gaps = [distance(gradient(policy, one, BY_BLOCKS), gradient(policy, one, WHOLE)) for one in layouts]
    results.report("attention.gradient", float(np.max(gaps)))
    results.report("attention.graphs", number_of_graphs(policy, layouts), layouts=LAYOUTS)
    mixed = of_config(qwen3(**sizes, vocabulary=VOCABULARY), recipe_of(setting, LlamaModel(), parameters="mixed"))
    results.report(
        "attention.bf16", distance(gradient(mixed, layouts[0], BY_BLOCKS), gradient(mixed, layouts[0], WHOLE))
    )
    long, number = setting.of(cuda=4096, cpu=64), 4
    tokens = torch.ones(number, long, dtype=torch.int64, device=setting.device)
    row = Layout(tokens=tokens, packing=packed([long] * number, setting))
    device, seconds, memory = torch.device(setting.device), {}, {}
    for way in (BY_BLOCKS, WHOLE):
        with peak_bytes(device) as peak:
            seconds[way] = median_seconds(lambda w=way: gradient(mixed, row, w), device, rounds=3)
        memory[way] = peak.total
    results.report("attention.speed", seconds[WHOLE] / seconds[BY_BLOCKS], by_blocks_s=seconds[BY_BLOCKS])
    results.report("attention.memory", memory[BY_BLOCKS] / memory[WHOLE], by_blocks_bytes=memory[BY_BLOCKS])


def mistral(sizes: dict[str, int]) -> MistralConfig:
    """A model of the same sizes whose tokens see 20 positions back."""
    return MistralConfig(
        vocab_size=VOCABULARY,
        hidden_size=sizes["hidden"],
        intermediate_size=sizes["mlp"],
        num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"],
        num_key_value_heads=sizes["heads"] // 2,
        head_dim=sizes["head_size"],
        sliding_window=20,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )


def drawn(seed: int, longest: int, setting: Setting) -> Layout:
    """A layout of eight rollouts: of two prompts, or of eight sequences of their own, by turns."""
    rng = np.random.default_rng(seed)
    prompt = torch.from_numpy(np.repeat(rng.integers(2, longest // 3, 2), 4))
    length = prompt + torch.from_numpy(rng.integers(1, longest - longest // 3, 8))
    tokens = torch.from_numpy(rng.integers(0, VOCABULARY, (8, int(length.max()))))
    group = torch.arange(8) // 4
    packing = Packing.of(length) if seed % 2 else Packing.with_shared_prompts(length, prompt, group)
    device = torch.device(setting.device)
    return Layout(tokens=tokens.to(device), packing=packing.to(device))


def packed(lengths: list[int], setting: Setting) -> Packing:
    """Sequences of these lengths."""
    return Packing.of(torch.tensor(lengths)).to(torch.device(setting.device))


def attending(policy: Policy, way: str) -> TransformersPolicy:
    """The policy, which attends in this way from now on."""
    assert isinstance(policy, TransformersPolicy)
    policy.model.set_attn_implementation(way)
    assert policy.attends_by_blocks == (way == BY_BLOCKS)
    return policy


@torch.no_grad()
def forward_gap(policy: Policy, layouts: list[Layout]) -> float:
    """Largest difference of a log-probability, in nats."""
    gaps = []
    for one in layouts:
        found, expected = (
            attending(policy, way).score(one.tokens, 1.0, packing=one.packing).logprobs_BT for way in (BY_BLOCKS, WHOLE)
        )
        gaps.append(float((found - expected).abs().max()))
    return float(np.max(gaps))


def gradient(policy: Policy, layout: Layout, way: str) -> Tensor:
    """Gradient of a weighted sum of log-probabilities, [N] on the CPU."""
    policy.zero_grad(set_to_none=True)
    logprobs_BT = attending(policy, way).score(layout.tokens, 1.0, packing=layout.packing).logprobs_BT
    weight_BT = torch.linspace(-1, 1, logprobs_BT.numel(), device=logprobs_BT.device).view_as(logprobs_BT)
    (logprobs_BT * weight_BT).sum().backward()
    return flat(parameter.grad for parameter in policy.parameters() if parameter.grad is not None)


def number_of_graphs(policy: Policy, layouts: list[Layout]) -> int:
    """Graphs that Dynamo makes for all layouts, forward and with a gradient, from a fresh start."""
    from torch._dynamo.utils import counters

    torch.compiler.reset()
    counters.clear()
    for one in layouts:
        gradient(policy, one, BY_BLOCKS)
    return counters["stats"]["unique_graphs"]
