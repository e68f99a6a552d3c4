"""Recipes and policies with an adapter on a model of a few thousand parameters."""

from pathlib import Path
from typing import Any

import torch
from trainer.tiny import tiny_recipe

from scalerl.model.adapter import AdaptedPolicy
from scalerl.model.build import new_policy
from scalerl.recipe import ResolvedRecipe

LORA = {"type": "lora", "rank": 4, "alpha": 8.0}


def adapted_recipe(folder: Path, adapter: dict[str, Any] | None = None, **settings: Any) -> ResolvedRecipe:
    """The tiny recipe with the model in `folder` and an adapter; a phrase as short as its answers."""
    phrase = {"length_control": {"type": "interruption", "phrase": "</think>"}}
    base = {"generation": {"thinking": 8, "answer": 6}, "warm_start": {"steps": 0}, "zero_variance": "keep"}
    recipe = tiny_recipe(**{**phrase, **base, **settings}).model_dump(mode="json")
    model = {"type": "pretrained", "path": str(folder)}
    return ResolvedRecipe.model_validate({**recipe, "model": model, "adapter": {**LORA, **(adapter or {})}})


def adapted_policy(recipe: ResolvedRecipe, *, std: float = 0.05) -> AdaptedPolicy:
    """The policy of the recipe, with an adapter whose A and B are both random."""
    policy = new_policy(recipe)
    assert isinstance(policy, AdaptedPolicy)
    policy.load_weights(Path(recipe.model.path))
    generator = torch.Generator().manual_seed(1)
    drawn = policy.initial_adapter(generator)
    policy.import_weights({name: torch.randn(one.shape, generator=generator) * std for name, one in drawn.items()})
    return policy
