"""Who runs where: a pure function of the nodes' devices and of how many of each role a run has.

    node 0   trainer 0   trainer 1   trainer 2   trainer 3      coordinator (no device)
    node 1   trainer 4   evaluator   generator 0 ----------     a generator over two devices
    node 2   generator 1 ----------  generator 2 ----------

Trainers are packed onto the first nodes, since they talk to each other most. The coordinator is beside the first of
them, so that a step's groups have the shortest way. A generator's devices lie on one node. A device without work would
be paid for, so it is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scalerl.quantities import counted
from scalerl.recipe import ResolvedRecipe

UnitRole = Literal["coordinator", "trainer", "evaluator", "generator"]
"""Schedules and keeps the books; a rank of the learner; measures published weights; decodes."""


@dataclass(frozen=True, kw_only=True)
class PlacedUnit:
    """A process and its devices: `PlacedUnit(role="generator", index=3, node=2, devices=(6, 7))`."""

    role: UnitRole
    index: int
    """Among those of its role, from 0."""
    node: int
    devices: tuple[int, ...]
    """Of its node, from 0; the coordinator has none."""

    @property
    def name(self) -> str:
        """As in logs and tables: `generator 3`."""
        return self.role if self.role in ("coordinator", "evaluator") else f"{self.role} {self.index}"


def place_run(recipe: ResolvedRecipe, gpus_of_nodes: Sequence[int]) -> tuple[PlacedUnit, ...]:
    """Every unit of a run on the wall clock; where no node has a GPU, its units work on CPUs, any number on a node.

    ValueError where the GPUs are too few, or some of them would have no work.
    """
    cluster, trainers, devices = recipe.cluster, recipe.trainers, recipe.devices_of_generator
    assert cluster.type == "wall", "units are processes of the wall clock"
    if not any(gpus_of_nodes):
        gpus_of_nodes = split(
            len(gpus_of_nodes), trainers=trainers, generators=cluster.decoders, tensor_parallel=devices
        )
    return place(
        gpus_of_nodes,
        trainers=trainers,
        generators=cluster.generators,
        tensor_parallel=devices,
        evaluator=cluster.evaluator,
    )


def place(
    devices_of_nodes: Sequence[int],
    *,
    trainers: int,
    generators: int,
    tensor_parallel: int = 1,
    evaluator: bool = False,
) -> tuple[PlacedUnit, ...]:
    """Every unit with its node and devices: the coordinator, then trainers, the evaluator and generators.

    The evaluator decodes like a generator: it has as many devices as one. ValueError where the units do not fit, and
    where a device is left without work.
    """
    for name, count in {"trainers": trainers, "generators": generators, "tensor_parallel": tensor_parallel}.items():
        if count < 1:
            raise ValueError(f"{name}: found {count}; must be at least 1")
    if not devices_of_nodes or min(devices_of_nodes) < 1:
        raise ValueError(f"every node needs a device to work with; found {list(devices_of_nodes)} devices by node")
    free = [list(range(count)) for count in devices_of_nodes]
    units = [PlacedUnit(role="coordinator", index=0, node=0, devices=())]
    if trainers > sum(devices_of_nodes):
        raise ValueError(f"{trainers} trainers need a device each; the nodes have {_total(free)}")
    node = 0
    for index in range(trainers):
        while not free[node]:
            node += 1
        units.append(PlacedUnit(role="trainer", index=index, node=node, devices=(free[node].pop(0),)))
    decoders: list[tuple[UnitRole, int]] = [("generator", index) for index in range(generators)]
    if evaluator:
        decoders.insert(0, ("evaluator", 0))
    left = {number: list(devices) for number, devices in enumerate(free)}
    for placed, (role, index) in enumerate(decoders):
        node = next((number for number, devices in left.items() if len(devices) >= tensor_parallel), -1)
        if node < 0:
            asked = counted(generators, "generator") + (" and an evaluator" if evaluator else "")
            raise ValueError(
                f"{asked} of {counted(tensor_parallel, 'device')} each, on one node, do not fit beside "
                f"{counted(trainers, 'trainer')}: {placed} of {len(decoders)} do; the trainers leave {_total(free)}"
            )
        devices, left[node] = tuple(left[node][:tensor_parallel]), left[node][tensor_parallel:]
        units.append(PlacedUnit(role=role, index=index, node=node, devices=devices))
    _refuse_idle(left, generators, tensor_parallel)
    return tuple(units)


def split(nodes: int, *, trainers: int, generators: int, tensor_parallel: int = 1) -> tuple[int, ...]:
    """Devices of each node of machines that have no fixed number of them, CPUs: about equally many, all with work.

    >>> split(2, trainers=2, generators=4)
    (3, 3)

    ValueError where there are fewer units than nodes.
    """
    if trainers + generators < nodes:
        raise ValueError(f"{trainers + generators} trainers and generators do not occupy {nodes} nodes; ask for fewer")
    counts = []
    for later in range(nodes - 1, -1, -1):
        share = -(-(trainers + generators * tensor_parallel) // (later + 1))
        most = trainers + generators - later  # every later node is to have a unit
        own_trainers = min(trainers, share, most)
        room = max(0, share - own_trainers) // tensor_parallel
        own_generators = min(generators, most - own_trainers, max(room, 0 if own_trainers else 1))
        if later == 0:
            own_trainers, own_generators = trainers, generators
        counts.append(own_trainers + own_generators * tensor_parallel)
        trainers, generators = trainers - own_trainers, generators - own_generators
    return tuple(counts)


def _refuse_idle(left: dict[int, list[int]], generators: int, tensor_parallel: int) -> None:
    """Raises ValueError where a device has no work, with the number of generators that would use all of them."""
    idle = {node: devices for node, devices in left.items() if devices}
    if not idle:
        return
    count = sum(map(len, idle.values()))
    if all(len(devices) % tensor_parallel == 0 for devices in idle.values()):
        way = f"generators: {generators + count // tensor_parallel} would use them"
    else:
        way = f"a generator takes {counted(tensor_parallel, 'device')} of one node"
    where = "; ".join(f"node {node}: {', '.join(map(str, devices))}" for node, devices in idle.items())
    raise ValueError(
        f"{counted(count, 'device')} would have no work ({where}) and be paid for; {way}, or ask for fewer devices"
    )


def _total(free: list[list[int]]) -> str:
    """`7 devices (3 on node 0, 4 on node 1)`."""
    by_node = ", ".join(f"{len(devices)} on node {node}" for node, devices in enumerate(free))
    return f"{counted(sum(map(len, free)), 'device')} ({by_node})"
