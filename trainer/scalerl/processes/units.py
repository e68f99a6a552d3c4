"""The units of a run on the wall clock, and the devices they have."""

from collections.abc import Sequence

import torch

from scalerl.cluster.placement import PlacedUnit, place, split
from scalerl.model.device import device_of
from scalerl.recipe import ResolvedRecipe


def units_of(recipe: ResolvedRecipe, gpus_of_nodes: Sequence[int]) -> tuple[PlacedUnit, ...]:
    """Every unit of the run, on nodes with so many GPUs each; on CPUs any number of units fits a node.

    ValueError where the GPUs are too few, or some of them would have no work.
    """
    generator, trainers, generators = recipe.generator, recipe.trainers, recipe.cluster.generators
    size = generator.tensor_parallel if generator.type == "vllm" else 1
    devices = gpus_of_nodes
    if device_of(recipe).type == "cpu":
        devices = split(len(gpus_of_nodes), trainers=trainers, generators=generators, tensor_parallel=size)
    return place(devices, trainers=trainers, generators=generators, tensor_parallel=size)


def local_units(recipe: ResolvedRecipe) -> tuple[PlacedUnit, ...]:
    """The units of a run on this machine alone; GPUs beyond what it needs are left to others."""
    generator, cluster = recipe.generator, recipe.cluster
    size = generator.tensor_parallel if generator.type == "vllm" else 1
    return units_of(recipe, [min(torch.cuda.device_count(), recipe.trainers + cluster.generators * size)])


def generators_among(units: Sequence[PlacedUnit]) -> tuple[PlacedUnit, ...]:
    """The generators, in order."""
    return tuple(unit for unit in units if unit.role == "generator")
