"""Tokens a second of the built-in generator and of vLLM by each of its drivers, and what an update of weights costs.

    python benchmarks/generators_compared.py                   # two sizes of model; five minutes
    python benchmarks/generators_compared.py --sizes laptop --rounds 1

Each decodes the same requests with the same random weights, on one thread: 192 rollouts on 24 prompts, at most 64 at
once, answers of up to 128 tokens that end where a random policy ends them. Then weights are replaced ten times while
64 rollouts are under way: `pause_ms` is the time from the call to its return, in which no token is chosen by the first
two, and by the third only while its engine loads. All figures are medians over rounds in which everything runs in turn,
after one round that is not counted. vLLM's engine of the driver `async` is a process beside this one, and
`tokens_per_cpu_s` counts both. Writes `results/generators_compared.json`.
"""

import argparse
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import write_record

from scalerl.generator.generator import Generator, decode_all
from scalerl.generator.make import DRIVERS
from scalerl.generator.request import Request
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.generator.vllm_engine import engine_arguments
from scalerl.generator.vllm_generator import VllmGenerator
from scalerl.model.build import empty_policy
from scalerl.model.policy import Policy, frozen_copy
from scalerl.recipe import Generation, LlamaModel, ResolvedRecipe
from scalerl.rollout import Prompt
from scalerl.tokens.symbols import END_THINK_ID, EOS_ID, SymbolTokenizer
from scalerl.weights.hugging_face import Weights

SIZES = {
    "laptop": LlamaModel(hidden=64, layers=4, heads=2, mlp=192),
    "7 M": LlamaModel(hidden=256, layers=8, heads=8, mlp=768),
}
LIMITS = Generation(thinking=120, answer=8)
PROMPTS, GENERATIONS, SLOTS, PROMPT_TOKENS = 24, 8, 64, 16
UPDATES = 10
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for size in options.sizes:
        found[size] = measured(SIZES[size], options.rounds)
        print(size, found[size], flush=True)
    write_record("generators_compared", {"rounds": options.rounds, "slots": SLOTS, "sizes": found})


def measured(model: LlamaModel, rounds: int) -> dict[str, Any]:
    """Of one size of model: each generator, and the ratios to the built-in one."""
    policy = empty_policy(model, torch.device("cpu"))
    policy.init_weights(torch.Generator().manual_seed(0))
    weights = policy.exported_weights()
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder), eos_token_id=EOS_ID)
        generators = {
            "torch": built_in(policy),
            **{f"vllm {driver}": vllm(model, Path(folder), driver) for driver in DRIVERS},
        }
        for generator in generators.values():
            stack.callback(generator.close)
        rows: dict[str, list[dict[str, float]]] = {name: [] for name in generators}
        for _ in range(rounds + 1):
            for name, generator in generators.items():
                rows[name].append(decoding(generator) | updating(generator, weights))
    medians = {name: {key: statistics.median(row[key] for row in of[1:]) for key in of[0]} for name, of in rows.items()}
    return {
        "parameters": policy.num_parameters(),
        "bytes": sum(tensor.numel() * tensor.element_size() for tensor in weights.values()),
        **medians,
        "tokens_per_s_over_torch": {
            name: of["tokens_per_s"] / medians["torch"]["tokens_per_s"] for name, of in medians.items()
        },
    }


def built_in(policy: Policy) -> Generator:
    """The built-in generator with a copy of the policy."""
    return TorchGenerator(
        frozen_copy(policy), LIMITS, SymbolTokenizer(), slots=SLOTS, max_prompt=PROMPT_TOKENS, phrase=(END_THINK_ID,)
    )


def vllm(model: LlamaModel, folder: Path, driver: str) -> Generator:
    """vLLM by one of its drivers."""
    recipe = ResolvedRecipe.model_validate(
        {
            "model": model,
            "generator": {"type": "vllm"},
            "tasks": [{"type": "k_smallest"}],
            "device": "cpu",
            "compute_unit_gpu_hours": 1.0,
        }
    )
    most = LIMITS.max_tokens
    arguments = engine_arguments(recipe, folder, slots=SLOTS, positions=PROMPT_TOKENS + most)
    engine = DRIVERS[driver](arguments, temperature=LIMITS.temperature, eos=(EOS_ID,))
    return VllmGenerator(engine, LIMITS, SymbolTokenizer(), slots=SLOTS, max_tokens=most, phrase=(END_THINK_ID,))


def requests() -> list[Request]:
    """The same for every generator."""
    rng = np.random.default_rng(0)
    prompts = [
        Prompt(
            task="random", id=str(n), tokens=tuple(rng.integers(4, 40, PROMPT_TOKENS).tolist()), answer="", difficulty=1
        )
        for n in range(PROMPTS)
    ]
    return [
        Request(prompt=prompt, group=n, index=i, seed=n * GENERATIONS + i)
        for n, prompt in enumerate(prompts)
        for i in range(GENERATIONS)
    ]


def decoding(generator: Generator) -> dict[str, float]:
    """All requests from the first to the last token."""
    start, used = time.perf_counter(), processor_s(generator)
    finished = decode_all(generator, requests())
    seconds, cpu_s = time.perf_counter() - start, processor_s(generator) - used
    tokens = sum(len(one.rollout.tokens) for one in finished)
    return {"tokens": tokens, "tokens_per_s": tokens / seconds, "tokens_per_cpu_s": tokens / cpu_s}


def updating(generator: Generator, weights: Weights) -> dict[str, float]:
    """Ten updates, a decode step after each; all slots hold a rollout when it begins."""
    generator.submit(requests())
    generator.step()
    seconds = []
    for version in range(1, UPDATES + 1):
        start = time.perf_counter()
        generator.set_weights(weights, version)
        seconds.append(time.perf_counter() - start)
        generator.step()
    decode_all(generator, [])
    return {"pause_ms": 1e3 * statistics.median(seconds)}


def processor_s(generator: Generator) -> float:
    """Processor time of this process and of the engine's own."""
    total = time.process_time()
    engine = generator.engine if isinstance(generator, VllmGenerator) else None
    for process in getattr(engine, "processes", []):
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


if __name__ == "__main__":
    main()
