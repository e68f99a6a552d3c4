"""One optimiser step on the device against the same on the CPU, then half precision against FP32 on the device.

A step is the learner's own (`TorchLearner.step`): batch, advantages, passes, clipping, AdamW. Compared are the loss,
the gradient as it was clipped, and the change of the weights. AdamW's first change of a weight is the learning rate
with the sign of its gradient, so of gradients near zero it shows the rounding; bounds of changes allow for that.
"""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import Qwen3Config

from gpu_report.made import built_in, groups_of, of_config, prompts_of, qwen3, recipe_of
from gpu_report.results import Results
from gpu_report.setting import Setting
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.policy import Policy
from scalerl.recipe import LlamaModel, ResolvedRecipe
from scalerl.rollout import Group
from scalerl.tokens.symbols import VOCABULARY_SIZE

SMALL_LOSS = 0.05
"""Losses below this are compared with this, since they are sums that cancel."""
MOST_TRIES = 20
"""Steps until the loss scale of FP16 has found its size."""
SYNCHRONISES = "called a synchronizing CUDA operation"


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What one step computed and changed."""

    loss: float
    grad_norm: float
    gradient: Tensor
    """All gradients after clipping, one after another, [N] on the CPU."""
    change: Tensor
    """Change of all weights, [N] on the CPU."""


def run(setting: Setting, results: Results) -> None:
    """Compare steps of the built-in model, then of a Qwen3 of `transformers`."""
    llama = setting.of(
        cuda=LlamaModel(hidden=512, layers=6, heads=8, mlp=1536), cpu=LlamaModel(hidden=64, layers=2, heads=4, mlp=192)
    )
    sizes = setting.of(
        cuda={"hidden": 512, "layers": 4, "heads": 8, "mlp": 1536, "head_size": 64},
        cpu={"hidden": 64, "layers": 2, "heads": 4, "mlp": 128, "head_size": 16},
    )
    lengths, generations = setting.of(cuda=(40, 300), cpu=(10, 40)), setting.of(cuda=8, cpu=4)
    prompts = prompts_of(4, setting.of(cuda=60, cpu=12))
    groups = groups_of(prompts, generations, lengths, VOCABULARY_SIZE)

    def taken(where: Setting, parameters: str = "fp32", packing: str = "none", config: Qwen3Config | None = None):
        optimiser = {"learning_rate": 1e-4, "warmup_steps": 0, "packing": packing, "micro_batch_tokens": 2048}
        recipe = recipe_of(where, llama, parameters=parameters, optimiser=optimiser)
        policy = built_in(recipe) if config is None else of_config(config, recipe, head=4.0)
        return step_taken(policy, recipe, groups)

    host = Setting(device="cpu", limit_s=setting.limit_s, scratch=setting.scratch)
    plain = taken(setting)
    if setting.is_cuda:
        compare(results, "step.fp32", plain, taken(host))
    compare(results, "step.packed", taken(setting, packing="prompts"), plain)
    compare(results, "step.bf16", taken(setting, "mixed"), plain)
    compare(results, "step.fp16", taken(setting, "fp16"), plain)
    config = qwen3(**sizes, vocabulary=VOCABULARY_SIZE)
    theirs = taken(setting, config=config)
    if setting.is_cuda:
        compare(results, "step.qwen3.fp32", theirs, taken(host, config=config))
        results.report("step.waits", waits(setting, llama, groups))
    compare(results, "step.qwen3.packed", taken(setting, packing="prompts", config=config), theirs)
    compare(results, "step.qwen3.bf16", taken(setting, "mixed", config=config), theirs)


def step_taken(policy: Policy, recipe: ResolvedRecipe, groups: list[Group]) -> Taken:
    """Take one step; of FP16, the first whose scaled gradient is finite."""
    learner = TorchLearner(policy, recipe)
    before = flat(parameter.detach() for parameter in policy.parameters())
    metrics = learner.step(groups).metrics
    for _ in range(MOST_TRIES):
        if not metrics["skipped"]:
            break
        metrics = learner.step(groups).metrics
    assert not metrics["skipped"], f"no step was taken: {metrics}"
    gradients = (parameter.grad for parameter in policy.parameters())
    return Taken(
        loss=metrics["loss"],
        grad_norm=metrics["grad_norm"],
        gradient=flat(gradient for gradient in gradients if gradient is not None),
        change=flat(parameter.detach() for parameter in policy.parameters()) - before,
    )


def flat(tensors) -> Tensor:
    """Tensors one after another, [N] in FP32 on the CPU."""
    return torch.cat([tensor.float().cpu().flatten().clone() for tensor in tensors])


def compare(results: Results, name: str, found: Taken, expected: Taken) -> None:
    """Report the differences, each relative to what was expected."""
    loss = abs(found.loss - expected.loss) / max(abs(expected.loss), SMALL_LOSS)
    results.report(f"{name}.loss", loss, loss=found.loss, expected=expected.loss)
    gap = distance(found.gradient, expected.gradient)
    results.report(f"{name}.gradient", gap, norm=found.grad_norm, expected=expected.grad_norm)
    results.report(f"{name}.weights", distance(found.change, expected.change))


def distance(found: Tensor, expected: Tensor) -> float:
    """Norm of the difference over the norm of what was expected."""
    return float((found - expected).double().norm() / expected.double().norm())


def waits(setting: Setting, model: LlamaModel, groups: list[Group]) -> int:
    """How often the host waits for the GPU in one step after the first."""
    recipe = recipe_of(setting, model)
    learner = TorchLearner(built_in(recipe), recipe)
    learner.step(groups)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            learner.step(groups)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum(SYNCHRONISES in str(one.message) for one in caught)
