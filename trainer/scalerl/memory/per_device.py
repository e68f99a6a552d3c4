"""Memory of one device of a cluster, by part: of a trainer's rank, of a generator and of the evaluator.

A rank holds, for each parameter, its weight, its gradient and AdamW's state. ZeRO shards them over the ranks (arXiv
1910.02054): stage 2 gradients and AdamW's state, stage 3 also the weights, which each layer gathers when it is
computed. A generator holds weights, and keys and values of its slots at full length, over its devices. Only what is
known before a run is counted: allocators add fragments, so a tenth of a device is kept free.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scalerl.memory.forecast import (
    PRODUCT_BYTES,
    WEIGHT_BYTES,
    PromptLengths,
    cache_row,
    critic_bytes,
    evaluation_rows,
    update_parts,
)
from scalerl.memory.shape import ModelShape
from scalerl.recipe import DeepSpeedSettings, ResolvedRecipe, Vllm

GB = 10**9
USABLE = 0.9
"""Share of a device's memory that the parts may take; the rest is left to the allocator."""
CONTEXT = 3 * GB
"""Round estimate for the CUDA context, libraries, communication buffers and captured graphs."""
MASTER = 4
"""Bytes of the FP32 copy that DeepSpeed updates, and of every gradient it accumulates."""
GATHERED_LAYERS = 2
"""Layers gathered at once in stage 3: the one being computed, and the next one, which is prefetched."""
MOST_RANKS = 4096
OF_TYPE = {"deepspeed": DeepSpeedSettings, "vllm": Vllm}


@dataclass(frozen=True, kw_only=True)
class DevicePlan:
    """Memory plan of one role: `DevicePlan(role="trainer", devices=16, parts={"weights": 2_007_565_312, ...})`."""

    role: str
    devices: int
    parts: Mapping[str, int]
    """Bytes on one device by part."""
    host_bytes: int = 0
    """Host memory per device."""

    @property
    def total(self) -> int:
        """Bytes on one device."""
        return sum(self.parts.values())

    def fits(self, device_gb: float) -> bool:
        """True if a device of `device_gb` GB has room."""
        return self.total <= USABLE * device_gb * GB


def trainer_device(recipe: ResolvedRecipe, shape: ModelShape, prompts: PromptLengths) -> DevicePlan:
    """Plan for one rank of the learner."""
    learner, ranks = recipe.learner, recipe.learner.ranks
    is_deepspeed, shares_weights = learner.type == "deepspeed", recipe.shards_weights
    shared = ranks if learner.type != "torch" else 1
    of_weights = ranks if shares_weights else 1
    weight, number, trained = WEIGHT_BYTES[recipe.parameters], shape.parameters, shape.trained_parameters
    held = number + (shape.adapter_parameters or 0)
    state = trained * (2 * weight + (MASTER if is_deepspeed else 0)) // shared
    offloaded = learner.type == "deepspeed" and learner.offload == "cpu"
    starts, references = recipe.needs_start and recipe.batches_of_a_round > 1, recipe.kl.coefficient > 0
    # With an adapter in one process, the reference is the model without it, and other copies share the model.
    frozen = starts * trained if held > number and learner.type == "torch" else (starts + references) * held
    parts = {
        "weights": held * weight // of_weights,
        "gradients": trained * (MASTER if is_deepspeed else weight) // shared,
        "AdamW": 0 if offloaded else state,
        "frozen copies": frozen * weight // of_weights,
        **update_parts(recipe, shape, prompts, device="cuda"),
        "CUDA context": CONTEXT,
    }
    rounded = parts.pop("weights rounded for products")
    largest = gathered(shape)
    if recipe.optimiser.gradient_checkpointing and number:
        rounded = rounded * largest // number
    parts["weights rounded for products"] = rounded
    if shares_weights:
        parts["gathered layers"] = largest * weight
    if critic := critic_bytes(recipe, shape):
        parts["critic"] = critic // shared
    return DevicePlan(role="trainer", devices=ranks, parts=parts, host_bytes=state if offloaded else 0)


def generator_device(recipe: ResolvedRecipe, shape: ModelShape, prompts: PromptLengths) -> DevicePlan:
    """Plan for one device of a generator's tensor-parallel group."""
    group = recipe.devices_of_generator
    # Key-value heads that do not divide further are repeated on several devices.
    split, slots = min(group, shape.kv_heads), recipe.cluster.slots
    length = prompts.trained + recipe.generation.max_tokens
    served = PRODUCT_BYTES[recipe.parameters]
    parts = {
        "weights": shape.parameters * served // group,
        "keys and values": slots * cache_row(recipe, shape, length) // split,
        "logits": 4 * 4 * slots * shape.vocabulary // group,
        "new weights on their way": gathered(shape) * served // group,
        "CUDA context": CONTEXT,
    }
    return DevicePlan(role="generator", devices=group * recipe.cluster.generators, parts=parts)


def evaluator_device(recipe: ResolvedRecipe, shape: ModelShape, prompts: PromptLengths) -> DevicePlan:
    """Plan for one device of the evaluator: a generator with room for its rollouts, and scoring by the initial policy.

    With the built-in generator, a policy with the initial weights is beside it; vLLM scores one sequence at a time.
    """
    generator, group = generator_device(recipe, shape, prompts), recipe.devices_of_generator
    length, rows = prompts.measured + recipe.generation.max_tokens, evaluation_rows(recipe, shape, prompts)
    logits = 4 * 4 * shape.vocabulary
    parts = {
        **generator.parts,
        "keys and values": rows * cache_row(recipe, shape, length) // min(group, shape.kv_heads),
        "logits": rows * logits // group,
    }
    if recipe.generator.type == "vllm":
        parts["log-probs of a sequence"] = length * logits // 2 // group
    elif shape.adapter_parameters is None:  # otherwise the start is the generator's policy without its adapter
        parts["weights of the start"] = shape.parameters * WEIGHT_BYTES[recipe.parameters]
    return DevicePlan(role="evaluator", devices=group, parts=parts)


def gathered(shape: ModelShape) -> int:
    """Parameters of the layers gathered at once in stage 3, plus embedding and head."""
    outer = 2 * shape.vocabulary * shape.hidden
    return GATHERED_LAYERS * max(0, shape.parameters - outer) // shape.layers + shape.vocabulary * shape.hidden


def plans(recipe: ResolvedRecipe, shape: ModelShape, prompts: PromptLengths) -> tuple[DevicePlan, ...]:
    """Plans for a trainer's rank, a generator's device, and the evaluator's device if there is one."""
    found = trainer_device(recipe, shape, prompts), generator_device(recipe, shape, prompts)
    return (*found, evaluator_device(recipe, shape, prompts)) if recipe.has_evaluator else found


def remedy(recipe: ResolvedRecipe, shape: ModelShape, prompts: PromptLengths, role: str, device_gb: float) -> str:
    """Settings that would make a `role` fit, added one after another until it does."""
    changes: dict[str, object] = {}
    plan = {"trainer": trainer_device, "generator": generator_device, "evaluator": evaluator_device}[role]
    for path, value in _steps(recipe, shape, prompts, role):
        changes[path] = value
        recipe = changed(recipe, path, value)
        if plan(recipe, shape, prompts).fits(device_gb):
            return " and ".join(
                f"{path}: {str(value).lower() if isinstance(value, bool) else value}" for path, value in changes.items()
            )
    return "a device with more memory, or a smaller model"


def _steps(
    recipe: ResolvedRecipe, shape: ModelShape, prompts: PromptLengths, role: str
) -> Iterator[tuple[str, object]]:
    """Settings that save memory on a device, cheapest first."""
    if recipe.parameters == "fp32":
        yield "parameters", "mixed"
    if role != "trainer":
        if recipe.generator.type == "torch":
            yield "generator.type", "vllm"
        group = recipe.devices_of_generator
        while group < shape.kv_heads:
            group *= 2
            yield "generator.tensor_parallel", group
        slots = recipe.cluster.slots
        while slots > 1:
            slots = slots // 2
            yield "cluster.slots", slots
        return
    row = prompts.trained + recipe.generation.max_tokens
    if recipe.optimiser.micro_batch_tokens > row:
        yield "optimiser.micro_batch_tokens", row
    if not recipe.optimiser.gradient_checkpointing:
        yield "optimiser.gradient_checkpointing", True
    if recipe.learner.type == "torch":
        yield "learner.type", "deepspeed"
    if not recipe.shards_weights:
        yield "learner.zero", 3
    if recipe.learner.type != "fsdp" and getattr(recipe.learner, "offload", "none") == "none":
        yield "learner.offload", "cpu"
    ranks = recipe.learner.ranks
    while ranks < MOST_RANKS:
        ranks *= 2
        yield "learner.ranks", ranks


def changed(recipe: ResolvedRecipe, path: str, value: object) -> ResolvedRecipe:
    """The recipe with one setting replaced; a new `type` of a block starts from that type's defaults."""
    name, _, field = path.partition(".")
    if not field:
        return recipe.model_copy(update={name: value})
    if field == "type":
        return recipe.model_copy(update={name: OF_TYPE[str(value)]()})
    return recipe.model_copy(update={name: getattr(recipe, name).model_copy(update={field: value})})
