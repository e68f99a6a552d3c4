"""The processes of a run on each node of its future job."""

from collections import Counter

from ablations.study.resources import Resources
from scalerl.cluster.placement import PlacedUnit, place_run
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.command import AnyRecipe, CommandRecipe


def placed(recipe: ResolvedRecipe, asked: Resources) -> tuple[PlacedUnit, ...]:
    """Every process of a run on the wall clock with its node; raises ValueError if the nodes do not suit them."""
    return place_run(recipe, [asked.num_gpus] * asked.nodes)


def threads_of_node(recipe: AnyRecipe, asked: Resources) -> int:
    """CPU threads that a run uses on its busiest node; if the nodes do not suit the run, those of the whole run."""
    if isinstance(recipe, CommandRecipe) or asked.nodes == 1 or recipe.cluster.type != "wall":
        return recipe.total_threads
    threads = recipe.cluster.generator_threads
    each = {"trainer": recipe.threads, "generator": threads, "evaluator": threads}
    busy: Counter[int] = Counter()
    try:
        for unit in placed(recipe, asked):
            busy[unit.node] += each.get(unit.role, 0)
    except ValueError:
        return recipe.total_threads
    return max(busy.values())
