"""The built-in generator beside `transformers`' generate and vLLM: tokens a second at the same number of slots, and the
time to take new weights.

All have the same weights and prompts, and decode answers of exactly the same length; no end of sequence is sampled.
vLLM is measured if it is installed.
"""

import gc
import statistics
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
import transformers

from gpu_report.clock import peak_rates, seconds_of
from gpu_report.made import EndlessTokenizer, built_in, decoded, prompts_of, recipe_of
from gpu_report.results import Results
from gpu_report.setting import Setting
from scalerl.generator.generator import Generator
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.generator.vllm_engine import engine_arguments
from scalerl.generator.vllm_generator import VllmGenerator
from scalerl.generator.vllm_steps import SteppedEngine
from scalerl.model.policy import Policy
from scalerl.recipe import LlamaModel, ResolvedRecipe, Vllm
from scalerl.rollout import Prompt
from scalerl.tokens.symbols import EOS_ID, PAD_ID, SymbolTokenizer
from scalerl.weights.hugging_face import Weights

GENERATIONS = 8
PROMPT = 32
ROUNDS = 3
NO_VLLM = "vLLM is not installed"


def run(setting: Setting, results: Results) -> None:
    """The built-in generator, then `transformers`, then vLLM."""
    model = setting.of(
        cuda=LlamaModel(hidden=1024, layers=8, heads=8, mlp=4096),
        cpu=LlamaModel(hidden=64, layers=2, heads=2, mlp=192),
    )
    slots, answer = setting.of(cuda=128, cpu=16), setting.of(cuda=256, cpu=32)
    recipe = recipe_of(
        setting,
        model,
        parameters=setting.of(cuda="mixed", cpu="fp32"),
        batch={"prompts": slots // GENERATIONS, "generations": GENERATIONS},
        generation={"thinking": "none", "answer": answer},
        cluster={"generators": 1, "trainers": 1, "slots": slots},
    )
    device, prompts = torch.device(setting.device), prompts_of(slots // GENERATIONS, PROMPT)
    # On the host, as a store hands them over.
    weights = {name: one.cpu().clone() for name, one in built_in(recipe, 1).exported_weights().items()}
    rate = of_built_in(setting, results, recipe, prompts, weights)
    their_rate = tokens_per_s(generating(setting, prompts, answer), slots * answer, device)
    results.report("generation.over_transformers", rate / their_rate, transformers_tokens_per_s=their_rate)
    if find_spec("vllm") is None:
        for name in ("generation.over_vllm", "generation.new_weights_vllm"):
            results.skip(name, NO_VLLM)
        return
    engine = vllm_of(recipe, setting, slots)
    try:
        vllm_rate = tokens_per_s(lambda: decoded(engine, prompts, GENERATIONS), slots * answer, device)
        results.report("generation.over_vllm", rate / vllm_rate, vllm_tokens_per_s=vllm_rate)
        take(results, "generation.new_weights_vllm", engine, weights, device)
    finally:
        engine.close()


def of_built_in(
    setting: Setting, results: Results, recipe: ResolvedRecipe, prompts: list[Prompt], weights: Weights
) -> float:
    """Tokens a second of the built-in generator, whose memory is free again afterwards; its model is in the folder."""
    policy, device = built_in(recipe), torch.device(setting.device)
    policy.save(setting.scratch / "model", eos_token_id=EOS_ID)
    SymbolTokenizer().save(setting.scratch / "model")
    slots, answer = recipe.cluster.slots, recipe.generation.max_tokens
    generator = TorchGenerator(policy, recipe.generation, EndlessTokenizer(), slots=slots, max_prompt=PROMPT)
    rate = tokens_per_s(lambda: decoded(generator, prompts, GENERATIONS), slots * answer, device)
    results.report("generation.roofline", rate / roofline(policy, recipe, slots, answer, device), tokens_per_s=rate)
    take(results, "generation.new_weights", generator, weights, device)
    return rate


def tokens_per_s(decode: Callable[[], object], tokens: int, device: torch.device) -> float:
    """Tokens a second of the fastest of some decodings after one, which captures and compiles."""
    decode()
    return tokens / min(seconds_of(decode, device) for _ in range(ROUNDS))


def roofline(policy: Policy, recipe: ResolvedRecipe, slots: int, answer: int, device: torch.device) -> float:
    """Tokens a second if a decode step only read weights and cache once, in the products' precision."""
    _, bandwidth = peak_rates(device)
    number = 4 if recipe.parameters == "fp32" else 2
    cached = slots * (PROMPT + answer / 2) * policy.size.cache_width
    return slots * bandwidth / (number * (policy.size.parameters + cached))


def take(results: Results, name: str, generator: Generator, weights: Weights, device: torch.device) -> None:
    """Report the median seconds of five changes of weights."""
    size = sum(one.numel() * one.element_size() for one in weights.values())
    seconds = statistics.median(
        seconds_of(lambda v=version: generator.set_weights(weights, v), device) for version in range(1, 6)
    )
    results.report(name, seconds, bytes=size, bytes_per_s=size / seconds)


def generating(setting: Setting, prompts: list[Prompt], answer: int) -> Callable[[], None]:
    """`transformers`' generate over all slots as one batch, in the precision that it serves fastest."""
    dtype = setting.of(cuda=torch.bfloat16, cpu=torch.float32)
    folder = setting.scratch / "model"
    model: Any = transformers.LlamaForCausalLM.from_pretrained(folder, dtype=dtype)
    model = model.eval().to(setting.device)
    config = transformers.GenerationConfig(
        do_sample=True, top_k=0, top_p=1.0, max_new_tokens=answer, eos_token_id=None, pad_token_id=PAD_ID
    )
    rows = [prompt.tokens for prompt in prompts for _ in range(GENERATIONS)]
    tokens = torch.tensor(rows, device=setting.device)

    @torch.inference_mode()
    def generate() -> None:
        model.generation_config.eos_token_id = None
        found = model.generate(tokens, attention_mask=torch.ones_like(tokens), generation_config=config)
        assert found.shape[1] == PROMPT + answer

    return generate


def vllm_of(recipe: ResolvedRecipe, setting: Setting, slots: int) -> VllmGenerator:
    """vLLM in this process, with the same weights, slots and limits."""
    gc.collect()
    if setting.is_cuda:
        torch.cuda.empty_cache()
    served = recipe.model_copy(update={"generator": Vllm()})
    most = recipe.generation.max_tokens
    arguments = engine_arguments(served, setting.scratch / "model", slots=slots, positions=PROMPT + most)
    tokenizer = EndlessTokenizer()
    engine = SteppedEngine(arguments, temperature=recipe.generation.temperature, eos=())
    return VllmGenerator(engine, recipe.generation, tokenizer, slots=slots, max_tokens=most, phrase=())
