"""The policy that a recipe describes, in its precision.

llama                  the built-in decoder
moe, pretrained        models of `transformers`, imported only for these because the import takes seconds
"""

import torch

from scalerl.model.device import device_of
from scalerl.model.llama import Llama
from scalerl.model.policy import FP32, Policy, Precision
from scalerl.recipe import Model, ResolvedRecipe
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
    policy.recompute = recipe.optimiser.gradient_checkpointing
    return policy


def empty_policy(model: Model, device: torch.device, precision: Precision = FP32, *, outline: bool = False) -> Policy:
    """A policy of this model on `device`, with weights not yet set."""
    if model.type == "llama":
        return Llama(model, make_tokenizer(model).size, torch.device("meta") if outline else device, precision)
    from scalerl.model.transformers_load import mixtral, of_folder

    if model.type == "moe":
        return mixtral(model, device, precision, outline=outline)
    return of_folder(model, device, precision, outline=outline)
