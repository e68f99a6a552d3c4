"""Tokens a second of the built-in generator and learner, beside `transformers` and beside the machine's own arithmetic.

    python benchmarks/generation_speed.py                            # laptop scale, one and two threads; two minutes
    python benchmarks/generation_speed.py --threads 1 --repetitions 1
    python benchmarks/generation_speed.py --lengths long             # answers of 40 to 100 tokens; a record of its own

Model and task are those of `recipes/scales/laptop.yaml` after its warm start. Workloads, each decoded by our
`Generator` and by `transformers`' `generate` (the same weights, prompts, temperature and number of rows at once;
dynamic and static cache; no top-k):

    own lengths      every answer ends where the policy ends it; only tokens up to there count, on both sides
    equal lengths    no end is ever sampled: every answer has exactly the token limit
    long             every answer ends at a length drawn for it from 40 to 100 tokens, the same on both sides

Ours also returns the log-probability of every token, theirs does not; ours shares the prefill of one prompt among its
rollouts, refills rows that ended, and cuts answers off at their own limit, past which theirs may go on and is credited.

The share is that of FLOPs (`scalerl.cluster.cost.forward_flops`, each prompt prefilled once) in the rate of large
float32 matrix products at the same number of threads, measured in the same round. All figures are medians over rounds
in which everything runs in turn. Writes `results/generation_speed.json`.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from record import write_record
from torch import Tensor

from ablations.study.resolve import load_resolved
from scalerl.cluster.cost import forward_flops
from scalerl.generator.generator import decode_all
from scalerl.generator.make import make_generator
from scalerl.generator.request import Request
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.learner.batch import make_batch
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.build import new_policy
from scalerl.model.policy import Policy
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Group, Prompt, Rollout
from scalerl.run.warm_start import load_or_train
from scalerl.tasks import Task, make_task
from scalerl.tasks.lengths import longest_prompt
from scalerl.tokens.symbols import END_THINK_ID, EOS_ID, PAD_ID, SymbolTokenizer

LONG = ["generation={thinking: 94, answer: 5}"]
"""Up to 100 tokens: thinking, its end and the answer."""
SHORTEST, LONGEST = 40, 100
ROUNDS_OF_SLOTS = 8
"""Rollouts of one measurement, in multiples of the rows decoded at once."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--lengths", choices=["laptop", "long"], default="laptop")
    options = parser.parse_args()

    recipe = load_resolved("scalerl", "laptop", LONG if options.lengths == "long" else [])
    task = make_task(recipe.tasks[0], SymbolTokenizer())
    policy = new_policy(recipe)
    torch.set_num_threads(recipe.threads)
    with tempfile.TemporaryDirectory() as folder:
        start = load_or_train(policy, task, recipe, 0, Path(folder))
        llama = transformers.LlamaForCausalLM.from_pretrained(start, dtype=torch.float32).eval()
    threads = {
        str(n): measure(n, options.repetitions, options.lengths, recipe, task, policy, llama) for n in options.threads
    }
    result = {
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "model": {**recipe.model.model_dump(), "num_parameters": policy.num_parameters(), "dtype": "float32"},
        "slots": num_slots(recipe),
        "rollouts": ROUNDS_OF_SLOTS * num_slots(recipe),
        "repetitions": options.repetitions,
        "recipe": recipe.model_dump(mode="json"),
        "threads": threads,
    }
    write_record("generation_speed" if options.lengths == "laptop" else "generation_speed_long", result)
    for number, measured in threads.items():
        report(number, measured)


def num_slots(recipe: ResolvedRecipe) -> int:
    """Rows decoded at once."""
    return recipe.cluster.generators * recipe.cluster.slots


def lengths_drawn(recipe: ResolvedRecipe) -> np.ndarray:
    """The number of tokens at which each answer of the workload `long` ends, by the seed of its request."""
    drawn = np.random.default_rng(0).integers(SHORTEST, LONGEST + 1, size=ROUNDS_OF_SLOTS * num_slots(recipe))
    return drawn.astype(np.int64)


def measure(
    threads: int, repetitions: int, lengths: str, recipe: ResolvedRecipe, task: Task, policy: Policy, llama: Any
) -> dict[str, Any]:
    """Every measurement `repetitions` times in turn, after one round that does not count."""
    torch.set_num_threads(threads)
    prompts = task.train[: ROUNDS_OF_SLOTS * num_slots(recipe) // recipe.batch.generations]
    measurements: dict[str, Callable[[], dict[str, float]]] = {
        "matrix products": matrix_products,
        "training": lambda: training(recipe, task, policy, prompts),
    }
    for ending in ("own lengths", "equal lengths") if lengths == "laptop" else ("long",):
        measurements[f"ours, {ending}"] = lambda e=ending: ours(recipe, policy, prompts, ending=e)
        for cache in ("dynamic", "static"):
            measurements[f"transformers {cache}, {ending}"] = lambda e=ending, c=cache: theirs(
                recipe, policy, llama, prompts, ending=e, cache=c
            )
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in measurements}
    for repetition in range(repetitions + 1):
        torch.manual_seed(repetition)
        for name, run in measurements.items():
            measured = run()
            if repetition > 0:
                rounds[name].append(measured)
    return {name: summary(each, rounds["matrix products"]) for name, each in rounds.items()}


def summary(rounds: list[dict[str, float]], products: list[dict[str, float]]) -> dict[str, Any]:
    """Medians of one measurement and all its rounds; shares are of the matrix products of the same round."""
    shares = [one["flops_per_s"] / best["flops_per_s"] for one, best in zip(rounds, products, strict=True)]
    result: dict[str, Any] = {"flops_per_s": statistics.median(one["flops_per_s"] for one in rounds)}
    if "tokens_per_s" in rounds[0]:
        result |= {
            "tokens_per_s": statistics.median(one["tokens_per_s"] for one in rounds),
            "tokens_per_cpu_s": statistics.median(one["tokens_per_cpu_s"] for one in rounds),
            "share_of_matrix_products": statistics.median(shares),
        }
    return {**result, "rounds": rounds}


def report(threads: str, measured: dict[str, Any]) -> None:
    """One line a measurement."""
    print(
        f"\n{threads} thread(s)   {'tokens/s':>28}   share of {measured['matrix products']['flops_per_s']:.3g} FLOP/s"
    )
    for name, one in measured.items():
        if "tokens_per_s" in one:
            print(f"{name:34} {one['tokens_per_s']:10.0f}   {one['share_of_matrix_products']:8.1%}")


# --- what is measured -----------------------------------------------------------------------------------------------


def matrix_products() -> dict[str, float]:
    """The best rate of a few large float32 products."""
    best = 0.0
    for size in (512, 1024, 1536):
        a, b = torch.randn(size, size), torch.randn(size, size)
        for _ in range(4):
            start = time.perf_counter()
            torch.matmul(a, b)
            best = max(best, 2 * size**3 / (time.perf_counter() - start))
    return {"flops_per_s": best}


class NeverEnding(TorchGenerator):
    """Ends neither its thinking nor its answer, so every rollout reaches the token limit."""

    def _sample(self, logits: Tensor) -> tuple[Any, Any]:
        logits[:, [END_THINK_ID, EOS_ID]] = float("-inf")
        return super()._sample(logits)


class EndingAtItsLength(TorchGenerator):
    """Ends every answer with the token at which its length is reached, and no sooner."""

    lengths: np.ndarray

    def _sample(self, logits: Tensor) -> tuple[Any, Any]:
        n = len(logits)
        own = self._length[:n] - self._prompt_length[:n]
        force_ends(logits, torch.from_numpy(own + 1 == self.lengths[self._seed[:n].astype(np.int64)]))
        return super()._sample(logits)


def force_ends(logits: Tensor, ends: Tensor) -> None:
    """Rows that end take the end of sequence, and no other row ends anything; in place."""
    logits[:, [END_THINK_ID, EOS_ID]] = float("-inf")
    logits[ends] = float("-inf")
    logits[ends, EOS_ID] = 0.0


def rollouts_of(generator: TorchGenerator, prompts: tuple[Prompt, ...], generations: int) -> list[Rollout]:
    """All rollouts of all prompts, prompt by prompt."""
    requests = [
        Request(prompt=prompt, group=number, index=i, seed=number * generations + i)
        for number, prompt in enumerate(prompts)
        for i in range(generations)
    ]
    finished = decode_all(generator, requests)
    return [one.rollout for one in sorted(finished, key=lambda one: (one.request.group, one.request.index))]


GENERATORS = {"own lengths": TorchGenerator, "equal lengths": NeverEnding, "long": EndingAtItsLength}


def ours(recipe: ResolvedRecipe, policy: Policy, prompts: tuple[Prompt, ...], *, ending: str) -> dict[str, float]:
    """Continuous batching over all slots."""
    generator = GENERATORS[ending](
        policy,
        recipe.generation,
        SymbolTokenizer(),
        slots=num_slots(recipe),
        max_prompt=max(len(prompt.tokens) for prompt in prompts),
    )
    if isinstance(generator, EndingAtItsLength):
        generator.lengths = lengths_drawn(recipe)
    start, used = time.perf_counter(), time.process_time()
    rollouts = rollouts_of(generator, prompts, recipe.batch.generations)
    seconds, cpu_s = time.perf_counter() - start, time.process_time() - used
    lengths = [len(one.tokens) for one in rollouts]
    assert ending != "equal lengths" or set(lengths) == {recipe.generation.max_tokens}
    assert ending != "long" or lengths == lengths_drawn(recipe).tolist()
    return speed(recipe, policy, [(one.prompt, len(one.tokens)) for one in rollouts], seconds, cpu_s)


def theirs(
    recipe: ResolvedRecipe, policy: Policy, llama: Any, prompts: tuple[Prompt, ...], *, ending: str, cache: str
) -> dict[str, float]:
    """One left-padded batch of as many rows as we have slots after the other."""
    limit, generations = recipe.generation.max_tokens, recipe.batch.generations
    config = transformers.GenerationConfig(
        do_sample=True,
        temperature=recipe.generation.temperature,
        top_k=0,
        top_p=1.0,
        max_new_tokens=limit,
        min_new_tokens=limit if ending == "equal lengths" else None,
        eos_token_id=EOS_ID,
        pad_token_id=PAD_ID,
        cache_implementation="static" if cache == "static" else None,
        disable_compile=True,
    )
    rows = [prompt for prompt in prompts for _ in range(generations)]
    drawn = torch.from_numpy(lengths_drawn(recipe))
    lengths: list[int] = []
    start, used = time.perf_counter(), time.process_time()
    for first in range(0, len(rows), num_slots(recipe)):
        batch = rows[first : first + num_slots(recipe)]
        width = max(len(prompt.tokens) for prompt in batch)
        tokens = torch.tensor([(PAD_ID,) * (width - len(p.tokens)) + p.tokens for p in batch])
        ends = EndsAt(width, drawn[first : first + num_slots(recipe)])
        with torch.inference_mode():
            output = llama.generate(
                tokens,
                attention_mask=(tokens != PAD_ID).long(),
                generation_config=config,
                logits_processor=transformers.LogitsProcessorList([ends] if ending == "long" else []),
            )
        answers = output[:, width:]
        ended = answers == EOS_ID
        own = torch.where(ended.any(dim=1), ended.int().argmax(dim=1) + 1, answers.shape[1])
        lengths += own.tolist()
    seconds, cpu_s = time.perf_counter() - start, time.process_time() - used
    assert ending != "equal lengths" or set(lengths) == {limit}
    assert ending != "long" or lengths == drawn.tolist()
    return speed(recipe, policy, list(zip(rows, lengths, strict=True)), seconds, cpu_s)


class EndsAt(transformers.LogitsProcessor):
    """Ends row i of a batch with its `lengths[i]`th token, and no sooner."""

    def __init__(self, width: int, lengths: Tensor) -> None:
        self.width, self.lengths = width, lengths

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores, changed."""
        force_ends(scores, input_ids.shape[1] - self.width + 1 == self.lengths)
        return scores


def speed(
    recipe: ResolvedRecipe, policy: Policy, rows: list[tuple[Prompt, int]], seconds: float, cpu_s: float
) -> dict[str, float]:
    """Useful tokens and FLOPs a second of rollouts given as prompt and length."""
    tokens = sum(length for _, length in rows)
    context = sum(sum(range(len(prompt.tokens), len(prompt.tokens) + length)) for prompt, length in rows)
    distinct = [len(tokens) for tokens in {prompt.id: prompt.tokens for prompt, _ in rows}.values()]
    flops = forward_flops(policy.size, tokens, context)
    flops += forward_flops(policy.size, sum(distinct), sum(n * (n + 1) // 2 for n in distinct))
    return {
        "tokens": tokens,
        "seconds": seconds,
        "tokens_per_s": tokens / seconds,
        "tokens_per_cpu_s": tokens / cpu_s,
        "flops_per_s": flops / seconds,
    }


def training(recipe: ResolvedRecipe, task: Task, policy: Policy, prompts: tuple[Prompt, ...]) -> dict[str, float]:
    """Forward and backward over one optimiser step's rollouts of the policy itself."""
    generations = recipe.batch.generations
    generator = make_generator(recipe, policy, slots=num_slots(recipe), max_prompt=longest_prompt(task))
    rollouts = rollouts_of(generator, prompts[: recipe.batch.prompts], generations)
    groups = [
        Group(
            prompt=rollouts[i].prompt,
            rollouts=tuple(rollouts[i : i + generations]),
            rewards=(1.0,) * generations,
            outcomes=("right",) * generations,
        )
        for i in range(0, len(rollouts), generations)
    ]
    batch = make_batch(groups)
    learner = TorchLearner(policy, recipe)
    start, used = time.perf_counter(), time.process_time()
    learner.accumulate(batch, torch.randn(len(rollouts), 1))
    seconds, cpu_s = time.perf_counter() - start, time.process_time() - used
    policy.zero_grad(set_to_none=True)
    tokens = int(batch.length_B.sum())
    context = int((batch.length_B * (batch.length_B + 1) // 2).sum())
    flops = 3 * forward_flops(policy.size, tokens, context)
    return {
        "tokens": tokens,
        "seconds": seconds,
        "tokens_per_s": tokens / seconds,
        "tokens_per_cpu_s": tokens / cpu_s,
        "flops_per_s": flops / seconds,
    }


if __name__ == "__main__":
    main()
