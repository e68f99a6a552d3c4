"""The highest pass rate that runs can reach, if their task has a known limit.

`k_smallest` has one right answer to a prompt, and an answer longer than `generation.answer` is truncated. So the share
of the held-out prompts whose answer fits limits every pass rate.
"""

from collections.abc import Iterable

from scalerl.recipe import KSmallest, ResolvedRecipe
from scalerl.recipe.command import AnyRecipe


def highest_of(recipes: Iterable[AnyRecipe], task: str | None) -> float | None:
    """The highest limit of any of the recipes on the fitted task; None if one recipe has no known limit."""
    limits: dict[str, float] = {}
    for recipe in recipes:
        if not isinstance(recipe, ResolvedRecipe):
            return None
        key = f"{recipe.model.type} {recipe.tasks!r} {recipe.generation!r}"
        if key not in limits:
            limits[key] = known_ceiling(recipe, task)
    highest = max(limits.values(), default=1.0)
    return highest if highest < 1 else None


def known_ceiling(recipe: ResolvedRecipe, task: str | None) -> float:
    """The limit of one recipe on the fitted task, `task` None for its only task; 1 if no limit is known."""
    from scalerl.tasks import make_task
    from scalerl.tasks.lengths import highest_pass_rate
    from scalerl.tokens import make_tokenizer

    fitted = [one for one in recipe.tasks if task in (None, one.title)]
    if recipe.model.type == "pretrained" or len(fitted) != 1 or not isinstance(fitted[0], KSmallest):
        return 1.0
    tokenizer = make_tokenizer(recipe.model, thinks=recipe.generation.thinks)
    return highest_pass_rate(make_task(fitted[0], tokenizer), tokenizer, recipe.generation.answer) or 1.0
