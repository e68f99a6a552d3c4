"""Runs that a home folder has from the time when attention was free: under the same settings they are other runs."""

from collections.abc import Iterable

from ablations.home.home import Home
from ablations.text import counted
from scalerl.recipe import FreeAttention, ResolvedRecipe, Virtual


def trained_with_free_attention(home: Home, runs: Iterable[tuple[ResolvedRecipe, int]]) -> str:
    """What to tell the user of such runs before the first of these, each with its seed, is made; empty without any."""
    twins = [home.run(_twin(recipe).identity(seed)) for recipe, seed in runs if not _is_known(home, recipe, seed)]
    old = sum(folder.metrics.exists() for folder in twins)
    if old == 0:
        return ""
    return (
        f"{home.path} has {counted(old, 'run')} with these settings from the time when attention was free. Compute of "
        f"that time leaves out reading keys and values, so they are not used here and new runs are trained. To resume "
        f"the old runs, write `attention: {{type: free}}` under `cluster` in the scale."
    )


def _is_known(home: Home, recipe: ResolvedRecipe, seed: int) -> bool:
    """Whether attention is not charged, or this run was made before."""
    cluster = recipe.cluster
    is_free = not isinstance(cluster, Virtual) or cluster.attention.type == "free"
    return is_free or home.run(recipe.identity(seed)).path.exists()


def _twin(recipe: ResolvedRecipe) -> ResolvedRecipe:
    """The same with free attention."""
    return recipe.model_copy(update={"cluster": recipe.cluster.model_copy(update={"attention": FreeAttention()})})
