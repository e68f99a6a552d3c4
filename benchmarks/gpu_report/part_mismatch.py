"""How far the log-probabilities of a generator lie from the learner's at equal weights (lag 0).

    k3 = mean over the policy's own tokens of r - 1 - log r,  r = pi_learner / pi_generator

The learner scores packed, as in training. vLLM's tokens name the weights that chose them; those that name the first
weights are scored with these, though the engine ran ahead when the next arrived.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch

from gpu_report.made import built_in, decoded, group_of, of_config, prompts_of, qwen3, recipe_of
from gpu_report.part_generation import NO_VLLM
from gpu_report.results import Results
from gpu_report.setting import Setting
from scalerl.generator.generator import Generator, decode_all
from scalerl.generator.make import DRIVERS
from scalerl.generator.request import Request
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.generator.vllm_engine import engine_arguments
from scalerl.generator.vllm_generator import VllmGenerator
from scalerl.learner.batch import make_batch
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.policy import Policy, frozen_copy
from scalerl.objective.kl import token_kl
from scalerl.recipe import LlamaModel, ResolvedRecipe
from scalerl.rollout import Prompt, Rollout
from scalerl.tokens.symbols import EOS_ID, VOCABULARY_SIZE, SymbolTokenizer

PROMPT, GENERATIONS = 20, 4
BEFORE_UPDATE = 5
"""Steps of vLLM before new weights arrive in the midst of its rollouts."""
BUILT_IN = {
    "mismatch.fp32": ("fp32", "fp32"),
    "mismatch.mixed": ("mixed", "fp32"),
    "mismatch.fp16": ("fp16", "fp32"),
    "mismatch.bf16_head": ("mixed", "bf16"),
}
"""Precision of products and of the head, by row."""


@dataclass(frozen=True, kw_only=True)
class Gap:
    """`Gap(k3=2e-8, tokens=1280, largest=4e-4)`."""

    k3: float
    """Mean of the estimate, nats a token."""
    tokens: int
    largest: float
    """Largest |generator - learner| of a token, nats."""


def run(setting: Setting, results: Results) -> None:
    """The built-in generator in each precision, a model of `transformers`, then vLLM."""
    model = setting.of(
        cuda=LlamaModel(hidden=512, layers=6, heads=8, mlp=1536), cpu=LlamaModel(hidden=64, layers=2, heads=2, mlp=192)
    )
    prompts = prompts_of(setting.of(cuda=16, cpu=4), PROMPT)
    for name, (parameters, logits) in BUILT_IN.items():
        recipe = recipe_for(setting, model, parameters=parameters, logits=logits)
        report_gap(results, name, recipe, built_in(recipe), prompts)
    sizes: Any = setting.of(
        cuda={"hidden": 512, "layers": 4, "heads": 8, "mlp": 1536, "head_size": 64},
        cpu={"hidden": 64, "layers": 2, "heads": 4, "mlp": 128, "head_size": 16},
    )
    recipe = recipe_for(setting, model, parameters="mixed")
    report_gap(
        results,
        "mismatch.qwen3",
        recipe,
        of_config(qwen3(**sizes, vocabulary=VOCABULARY_SIZE), recipe, head=4.0),
        prompts,
    )
    if find_spec("vllm") is None:
        for name in ("mismatch.vllm", *(["mismatch.vllm_versions"] if setting.is_cuda else [])):
            results.skip(name, NO_VLLM)
        return
    with_vllm(setting, results, model, prompts)


def recipe_for(setting: Setting, model: LlamaModel, **changes: Any) -> ResolvedRecipe:
    """A recipe whose learner packs rollouts of one prompt together."""
    generation = {"thinking": "none", "answer": setting.of(cuda=200, cpu=40)}
    optimiser = {"packing": "prompts", "micro_batch_tokens": 4096}
    return recipe_of(setting, model, generation=generation, optimiser=optimiser, **changes)


def report_gap(results: Results, name: str, recipe: ResolvedRecipe, policy: Policy, prompts: list[Prompt]) -> None:
    """Decode with a copy of the policy by the built-in generator and report the gap."""
    tokenizer = SymbolTokenizer(thinks=False)
    generator = TorchGenerator(frozen_copy(policy), recipe.generation, tokenizer, slots=16, max_prompt=PROMPT)
    rollouts = decoded(generator, prompts, GENERATIONS)
    found = gap(TorchLearner(policy, recipe), rollouts)
    results.report(name, found.k3, tokens=found.tokens, largest_gap=found.largest)


def gap(learner: TorchLearner, rollouts: list[Rollout], version: int = 0) -> Gap:
    """The gap over the tokens that name this version of the weights."""
    groups = [group_of(rollouts[i].prompt, rollouts[i : i + GENERATIONS]) for i in range(0, len(rollouts), GENERATIONS)]
    batch = make_batch(groups).to(learner.device)
    scored_BT = learner.logprobs(learner.trained, batch)
    mask_BT = torch.zeros_like(batch.host_mask_BT)
    for row, rollout in enumerate(rollouts):
        start = len(rollout.prompt.tokens)
        mask_BT[row, start : start + len(rollout.tokens)] = torch.from_numpy(rollout.versions == version)
    mask_BT = mask_BT.to(learner.device)
    kl_BT = token_kl("k3", batch.behaviour_BT.double(), scored_BT.double(), mask_BT)
    largest = (scored_BT - batch.behaviour_BT)[mask_BT].abs().max()
    number = int(mask_BT.sum())
    return Gap(k3=float(kl_BT.sum()) / number, tokens=number, largest=float(largest))


def with_vllm(setting: Setting, results: Results, model: LlamaModel, prompts: list[Prompt]) -> None:
    """vLLM step by step, and on a GPU also the engine that runs ahead."""
    parameters = setting.of(cuda="mixed", cpu="fp32")
    recipe = recipe_for(setting, model, parameters=parameters, generator={"type": "vllm"})
    policy = built_in(recipe)
    policy.save(setting.scratch / "model", eos_token_id=EOS_ID)
    SymbolTokenizer().save(setting.scratch / "model")
    learner = TorchLearner(policy, recipe)
    generator = vllm_of(recipe, setting, "steps")
    try:
        found = gap(learner, decoded(generator, prompts, GENERATIONS))
    finally:
        generator.close()
    results.report("mismatch.vllm", found.k3, tokens=found.tokens, largest_gap=found.largest)
    if not setting.is_cuda:
        return
    torch.cuda.empty_cache()
    generator = vllm_of(recipe, setting, "async")
    try:
        rollouts = updated_midway(generator, built_in(recipe, 1).exported_weights(), prompts)
    finally:
        generator.close()
    later = sum(int((rollout.versions == 1).sum()) for rollout in rollouts)
    assert later, "no token was chosen by the new weights"
    found = gap(learner, rollouts)
    results.report("mismatch.vllm_versions", found.k3, tokens=found.tokens, tokens_of_new_weights=later)


def vllm_of(recipe: ResolvedRecipe, setting: Setting, driver: str) -> VllmGenerator:
    """vLLM by one of its drivers, with the weights in the scratch folder."""
    most, slots = recipe.generation.max_tokens, 16
    arguments = engine_arguments(recipe, setting.scratch / "model", slots=slots, positions=PROMPT + most)
    engine = DRIVERS[driver](arguments, temperature=recipe.generation.temperature, eos=(EOS_ID,))
    tokenizer = SymbolTokenizer(thinks=False)
    return VllmGenerator(engine, recipe.generation, tokenizer, slots=slots, max_tokens=most, phrase=())


def updated_midway(generator: Generator, weights: dict[str, Any], prompts: list[Prompt]) -> list[Rollout]:
    """Rollouts during which new weights of version 1 arrived."""
    generator.submit(
        [
            Request(prompt=prompt, group=number, index=i, seed=number * GENERATIONS + i)
            for number, prompt in enumerate(prompts)
            for i in range(GENERATIONS)
        ]
    )
    finished = [one for _ in range(BEFORE_UPDATE) for one in generator.step()[0]]
    generator.set_weights(weights, 1)
    finished += decode_all(generator, [])
    return [one.rollout for one in sorted(finished, key=lambda one: (one.request.group, one.request.index))]
