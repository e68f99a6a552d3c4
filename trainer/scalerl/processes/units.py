"""The units of a run on the wall clock, and their devices."""

from collections.abc import Sequence

import torch

from scalerl.cluster.placement import PlacedUnit, place_run
from scalerl.model.device import Rejected, device_of
from scalerl.recipe import ResolvedRecipe


def units_of(recipe: ResolvedRecipe, gpus_of_nodes: Sequence[int]) -> tuple[PlacedUnit, ...]:
    """All units of the run, on nodes with so many GPUs each; a run on CPUs uses no GPUs. See `place_run`."""
    return place_run(recipe, [0] * len(gpus_of_nodes) if device_of(recipe).type == "cpu" else gpus_of_nodes)


def local_units(recipe: ResolvedRecipe) -> tuple[PlacedUnit, ...]:
    """The units of a run on this machine alone; surplus GPUs are left free.

    On the virtual clock these are the learner's ranks only. Rejected if there are GPUs, but fewer than ranks.
    """
    gpus = 0 if device_of(recipe).type == "cpu" else min(torch.cuda.device_count(), recipe.most_gpus)
    if recipe.cluster.type == "wall":
        return units_of(recipe, [gpus])
    ranks = recipe.learner.ranks
    if 0 < gpus < ranks:
        raise Rejected(f"learner.ranks: {ranks} ranks need a GPU each, and this machine has {gpus}; use fewer ranks")
    return tuple(PlacedUnit(role="trainer", index=rank, node=0, devices=(rank,)) for rank in range(ranks))
