"""The policy that a recipe describes, in its precision.

`transformers` and `peft` are imported only for the models that need them, because the imports take seconds.
"""

import torch

from scalerl.errors import Rejected
from scalerl.model.device import device_of
from scalerl.model.llama import Llama
from scalerl.model.policy import FP32, Policy, Precision
from scalerl.recipe import Lora, Model, ResolvedRecipe
from scalerl.tokens import make_tokenizer

PRECISIONS = {
    "fp32": (torch.float32, torch.float32),
    "mixed": (torch.float32, torch.bfloat16),
    "bf16": (torch.bfloat16, torch.bfloat16),
    "fp16": (torch.float32, torch.float16),
}
"""Types of weights and products for each value of the axis `parameters`."""
HEADS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def precision_of(recipe: ResolvedRecipe) -> Precision:
    """Precision set by the recipe's `parameters` and `logits`."""
    weights, products = PRECISIONS[recipe.parameters]
    return Precision(weights=weights, products=products, head=HEADS[recipe.logits])


def new_policy(recipe: ResolvedRecipe, *, outline: bool = False) -> Policy:
    """A policy of the recipe's size, precision and device, with weights not yet set.

    An outline (`scalerl.model.outline`) has no memory for weights.
    """
    policy = empty_policy(recipe.model, device_of(recipe), precision_of(recipe), outline=outline)
    if recipe.adapter.type == "lora":
        policy = with_adapter(policy, recipe.adapter)
    policy.recompute = recipe.optimiser.gradient_checkpointing
    return policy


def with_adapter(policy: Policy, settings: Lora) -> Policy:
    """The policy with an adapter of 0; raises Rejected with the install command if peft is missing."""
    from scalerl.model.transformers_policy import TransformersPolicy

    try:
        from scalerl.model.adapter import AdaptedPolicy
    except ModuleNotFoundError as error:
        if error.name != "peft":
            raise
        raise Rejected(
            "the recipe has `adapter: {type: lora}`, but peft is not installed; install it with `pip install "
            "--constraint constraints.txt '.[peft]'`, or remove `adapter`"
        ) from None
    assert isinstance(policy, TransformersPolicy), "refused when the recipe was read"
    return AdaptedPolicy(policy, settings)


def empty_policy(model: Model, device: torch.device, precision: Precision = FP32, *, outline: bool = False) -> Policy:
    """A policy of this model on `device`, with weights not yet set."""
    if model.type == "llama":
        return Llama(model, make_tokenizer(model).size, torch.device("meta") if outline else device, precision)
    from scalerl.model.transformers_load import mixtral, of_folder

    if model.type == "moe":
        return mixtral(model, device, precision, outline=outline)
    return of_folder(model, device, precision, outline=outline)
