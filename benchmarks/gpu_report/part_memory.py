"""Measured peaks of a learner and of a generator against the forecast of `platform plan` (`scalerl.memory.per_device`).

The forecast also counts the CUDA context, which PyTorch's allocator does not; the context has a row of its own. On a
CPU the growth of this process is measured, which includes what the libraries keep for themselves.
"""

from typing import Any

import torch

from gpu_report.clock import peak_bytes
from gpu_report.made import (
    NO_FOLDER,
    EndlessTokenizer,
    built_in,
    decoded,
    groups_of,
    of_config,
    prompts_of,
    qwen3,
    recipe_of,
    shape_of_config,
)
from gpu_report.results import Results
from gpu_report.setting import Setting
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.learner.torch_learner import TorchLearner
from scalerl.memory.forecast import PromptLengths
from scalerl.memory.per_device import CONTEXT, DevicePlan, generator_device, trainer_device
from scalerl.memory.shape import ModelShape, shape_of
from scalerl.recipe import LlamaModel, ResolvedRecipe
from scalerl.rollout import Group


def run(setting: Setting, results: Results) -> None:
    """A Qwen3 with a large vocabulary in training, with and without recomputation; the built-in model in decoding."""
    sizes = setting.of(
        cuda={"hidden": 1024, "layers": 28, "heads": 16, "mlp": 3072, "head_size": 128, "vocabulary": 151_936},
        cpu={"hidden": 256, "layers": 8, "heads": 8, "mlp": 704, "head_size": 32, "vocabulary": 16_384},
    )
    config, device = qwen3(**sizes), torch.device(setting.device)
    length, rollouts = setting.of(cuda=2048, cpu=256), setting.of(cuda=8, cpu=4)
    prompts = prompts_of(2, length // 4, vocabulary=sizes["vocabulary"])
    answer = length - length // 4
    groups = groups_of(prompts, rollouts // 2, (answer, answer), sizes["vocabulary"])
    with peak_bytes(device):  # libraries take their own memory at the first use
        warm_up(setting)
    for name, recomputes in (("memory.trainer", False), ("memory.trainer_recomputing", True)):
        recipe = recipe_of(
            setting,
            dict(NO_FOLDER),
            parameters=setting.of(cuda="mixed", cpu="fp32"),
            batch={"prompts": 2, "generations": rollouts // 2},
            generation={"thinking": "none", "answer": answer},
            optimiser={
                "warmup_steps": 0,
                "micro_batch_tokens": setting.of(cuda=8192, cpu=512),
                "packing": "sequences",
                "gradient_checkpointing": recomputes,
            },
        )
        with peak_bytes(device) as peak:
            policy = of_config(config, recipe)
            train(TorchLearner(policy, recipe), groups)
        plan = trainer_device(recipe, shape_of_config(config), prompt_lengths(length // 4))
        against(results, name, peak.total, plan)
        del policy  # so that the next one is measured alone
    if setting.is_cuda:
        free, total = torch.cuda.mem_get_info(device)
        results.report("memory.context", total - free - torch.cuda.memory_reserved(device), forecast=CONTEXT)
    measure_generator(setting, results)


def warm_up(setting: Setting) -> None:
    """A step of a tiny model."""
    recipe = recipe_of(setting, LlamaModel())
    train(TorchLearner(built_in(recipe), recipe), groups_of(prompts_of(1, 8), 2, (8, 8), 48))


def train(learner: TorchLearner, groups: list[Group]) -> None:
    """Two steps, since the first makes AdamW's state."""
    for _ in range(2):
        assert not learner.step(groups).metrics["skipped"]


def prompt_lengths(prompt: int) -> PromptLengths:
    """Prompts of one length, trained and measured."""
    return PromptLengths(trained=prompt, measured=prompt, most_samples=1)


def against(results: Results, name: str, measured: int, plan: DevicePlan) -> None:
    """Report the share of the forecast that was needed, the context left out."""
    forecast = plan.total - CONTEXT
    parts: dict[str, Any] = {
        part.replace(" ", "_"): size for part, size in plan.parts.items() if part != "CUDA context"
    }
    results.report(name, measured / forecast, measured=measured, forecast=forecast, **parts)


def measure_generator(setting: Setting, results: Results) -> None:
    """All slots of the built-in generator at full length."""
    model = setting.of(
        cuda=LlamaModel(hidden=1024, layers=8, heads=8, mlp=4096),
        cpu=LlamaModel(hidden=256, layers=6, heads=8, mlp=768),
    )
    slots, prompt, answer = setting.of(cuda=256, cpu=48), 16, setting.of(cuda=496, cpu=112)
    recipe: ResolvedRecipe = recipe_of(
        setting,
        model,
        parameters=setting.of(cuda="mixed", cpu="fp32"),
        batch={"prompts": slots // 8, "generations": 8},
        generation={"thinking": "none", "answer": answer},
        cluster={"generators": 1, "trainers": 1, "slots": slots},
    )
    with peak_bytes(torch.device(setting.device)) as peak:
        generator = TorchGenerator(
            built_in(recipe), recipe.generation, EndlessTokenizer(), slots=slots, max_prompt=prompt
        )
        decoded(generator, prompts_of(slots // 8, prompt), 8)
    shape: ModelShape = shape_of(model)
    against(results, "memory.generator", peak.total, generator_device(recipe, shape, prompt_lengths(prompt)))
