"""Training tokens a second, and the share of the device's peak (MFU), by model and length of sequences.

    MFU = 3 x forward FLOPs (`scalerl.cluster.cost.forward_flops`, causal attention included) / seconds / peak

The peak is the data sheet's dense BF16 rate if the GPU is known, else measured. Work that recomputation repeats is not
counted. Whole optimiser steps are timed: batch, passes, clipping and AdamW.
"""

from typing import Any

import torch

from gpu_report.clock import median_seconds, peak_rates
from gpu_report.made import NO_FOLDER, built_in, groups_of, of_config, prompts_of, qwen3, recipe_of, shape_of_config
from gpu_report.part_memory import prompt_lengths
from gpu_report.results import Results
from gpu_report.setting import Setting
from scalerl.cluster.cost import cost_model, forward_flops
from scalerl.learner.learner import Update
from scalerl.learner.torch_learner import TorchLearner
from scalerl.memory.per_device import trainer_device
from scalerl.memory.shape import shape_of
from scalerl.recipe import Accelerator, LlamaModel, ResolvedRecipe, Virtual
from scalerl.rollout import Group
from scalerl.tokens.symbols import VOCABULARY_SIZE

Model = LlamaModel | dict[str, Any]
"""The built-in model, or the sizes of a Qwen3."""
BATCH_TOKENS = 32_768
CHARGED = "throughput.llama_0.1b.2k"
"""Row whose step is also held against the cost model."""
PROMPT = 64


def run(setting: Setting, results: Results) -> None:
    """Each model at each length; the shortest first."""
    llama = setting.of(
        cuda=LlamaModel(hidden=1024, layers=8, heads=8, mlp=4096),
        cpu=LlamaModel(hidden=128, layers=2, heads=2, mlp=384),
    )
    small: dict[str, Any] = setting.of(
        cuda={"hidden": 768, "layers": 12, "heads": 12, "mlp": 2048, "head_size": 64, "vocabulary": 32_768},
        cpu={"hidden": 128, "layers": 2, "heads": 4, "mlp": 256, "head_size": 32, "vocabulary": 1024},
    )
    large: dict[str, Any] = setting.of(
        cuda={"hidden": 1024, "layers": 28, "heads": 16, "mlp": 3072, "head_size": 128, "vocabulary": 151_936},
        cpu={"hidden": 192, "layers": 3, "heads": 6, "mlp": 512, "head_size": 32, "vocabulary": 2048},
    )
    peak, _ = peak_rates(torch.device(setting.device))
    for length_name, length in (("2k", setting.of(cuda=2048, cpu=128)), ("16k", setting.of(cuda=16_384, cpu=512))):
        measure(setting, results, f"throughput.llama_0.1b.{length_name}", llama, length, peak)
        for size_name, sizes in (("0.1b", small), ("0.6b", large)):
            measure(setting, results, f"throughput.qwen3_{size_name}.{length_name}", sizes, length, peak)


def measure(setting: Setting, results: Results, name: str, model: Model, length: int, peak: float) -> None:
    """Time steps of one model on sequences of one length; without recomputation if the plan says that it fits."""
    device = torch.device(setting.device)
    vocabulary = VOCABULARY_SIZE if isinstance(model, LlamaModel) else model["vocabulary"]
    rollouts = max(2, setting.of(cuda=BATCH_TOKENS, cpu=1024) // length)
    recipe = recipe_for(setting, model, length, rollouts, recomputes=False)
    if setting.is_cuda and not fits(recipe, model):
        recipe = recipe_for(setting, model, length, rollouts, recomputes=True)
    policy = built_in(recipe) if isinstance(model, LlamaModel) else of_config(qwen3(**model), recipe)
    answer = length - PROMPT
    groups = groups_of(prompts_of(1, PROMPT, vocabulary=vocabulary), rollouts, (answer, answer), vocabulary)
    learner = TorchLearner(policy, recipe)
    seconds = median_seconds(lambda: step(learner, groups), device, rounds=3)
    tokens, context = rollouts * length, rollouts * length * (length + 1) // 2
    results.report(
        name,
        3 * forward_flops(policy.size, tokens, context) / seconds / peak,
        tokens_per_s=tokens / seconds,
        parameters=policy.num_parameters(),
        recomputes=recipe.optimiser.gradient_checkpointing,
    )
    if setting.is_cuda and name == CHARGED:
        update = Update(trained_tokens=tokens, context_tokens=context, metrics={})
        cluster = Virtual(device=Accelerator(tflops=peak / 1e12))
        expected = cost_model(cluster, policy.size).train_s(update, 1)
        results.report("throughput.cost_model", seconds / expected, measured_s=seconds, modelled_s=expected)


def recipe_for(setting: Setting, model: Model, length: int, rollouts: int, *, recomputes: bool) -> ResolvedRecipe:
    """One group of `rollouts` sequences of `length` tokens, packed into passes."""
    return recipe_of(
        setting,
        model if isinstance(model, LlamaModel) else dict(NO_FOLDER),
        parameters=setting.of(cuda="mixed", cpu="fp32"),
        batch={"prompts": 1, "generations": rollouts},
        cluster={"generators": 1, "trainers": 1, "slots": 1},
        generation={"thinking": "none", "answer": length - PROMPT},
        optimiser={
            "warmup_steps": 0,
            "packing": "sequences",
            "micro_batch_tokens": max(length, setting.of(cuda=16_384, cpu=1024)),
            "gradient_checkpointing": recomputes,
        },
    )


def step(learner: TorchLearner, groups: list[Group]) -> None:
    """One optimiser step, which must be taken."""
    assert not learner.step(groups).metrics["skipped"]


def fits(recipe: ResolvedRecipe, model: Model) -> bool:
    """True if the plan has room for a step of this recipe on this GPU."""
    shape = shape_of(model) if isinstance(model, LlamaModel) else shape_of_config(qwen3(**model))
    total = torch.cuda.get_device_properties(0).total_memory
    return trainer_device(recipe, shape, prompt_lengths(PROMPT)).fits(total / 1e9)
