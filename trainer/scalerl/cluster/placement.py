"""Placement of a run's units: a pure function of the nodes' devices and the number of units of each role.

    node 0   trainer 0   trainer 1   trainer 2   trainer 3      beside the coordinator, which has no device
    node 1   trainer 4   evaluator   generator 0 ----------     a generator over two devices
    node 2   generator 1 ----------  generator 2 ----------

Trainers are packed onto the first nodes, because they exchange the most data. The coordinator is beside the first one,
which gives a step's groups the shortest way. A generator's devices are on one node. A device without work would still
be paid for, so it is an error. This module does not import torch: the platform uses its records too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from scalerl.quantities import counted

if TYPE_CHECKING:
    from scalerl.recipe import ResolvedRecipe

UnitRole = Literal["trainer", "evaluator", "generator"]
"""trainer: one rank of the learner; evaluator: measures published weights; generator: decodes."""


@dataclass(frozen=True, kw_only=True)
class PlacedUnit:
    """A process and its devices: `PlacedUnit(role="generator", index=3, node=2, devices=(6, 7))`."""

    role: UnitRole
    index: int
    """Number among the units of its role, from 0."""
    node: int
    devices: tuple[int, ...]
    """Numbers of its devices on the node, from 0."""

    @property
    def name(self) -> str:
        """Name in logs and tables, such as `generator 3`."""
        return self.role if self.role == "evaluator" else f"{self.role} {self.index}"


@dataclass(frozen=True, kw_only=True)
class UnitState:
    """State of one unit: `UnitState(unit="generator 3", node="n2", state="at work", doing="decode", deaths=1)`."""

    unit: str
    node: str
    """Name of the node, for messages."""
    state: str
    """`starting`, `catching up` (taking new weights), `at work`, `silent` (no sign of life), or `gone` for good."""
    doing: str
    """Activity of a unit at work (`scalerl.cluster.device_seconds`), or `paused`; otherwise empty."""
    deaths: int = 0
    """Number of processes that died in this place during this attempt."""


@dataclass(frozen=True, kw_only=True)
class NodeOfRun:
    """One node of a run: `NodeOfRun(node=1, nodes=4, allocation="17.0", name="n2", hosts=("10.0.0.11",))`.

    The coordinator is on node 0; every other node has an agent.
    """

    node: int
    nodes: int
    allocation: str
    """Job and attempt number, the same on all nodes of one attempt."""
    name: str
    """Name for messages."""
    hosts: tuple[str, ...] = ()
    """Known names or addresses of node 0, which are tried first."""

    def __post_init__(self) -> None:
        assert 0 <= self.node < self.nodes, self


def place_run(recipe: "ResolvedRecipe", gpus_of_nodes: Sequence[int]) -> tuple[PlacedUnit, ...]:
    """All units of a run on the wall clock; without GPUs the units use CPUs, any number per node.

    Raises ValueError if there are too few GPUs, or some would have no work.
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
    """Every unit with its node and devices: trainers, the evaluator and generators.

    The evaluator decodes like a generator and has as many devices. Raises ValueError if the units do not fit, or if a
    device has no work.
    """
    if not devices_of_nodes or min(devices_of_nodes) < 1:
        raise ValueError(f"every node needs a device; found {list(devices_of_nodes)} devices by node")
    free = [list(range(count)) for count in devices_of_nodes]
    units: list[PlacedUnit] = []
    if trainers > sum(devices_of_nodes):
        raise ValueError(f"{trainers} trainers need one device each; the nodes have {_total(free)}")
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
                f"{asked} with {counted(tensor_parallel, 'device')} each, on one node, do not fit beside "
                f"{counted(trainers, 'trainer')}: {placed} of {len(decoders)} do; "
                f"the trainers leave {_total(free)}"
            )
        devices, left[node] = tuple(left[node][:tensor_parallel]), left[node][tensor_parallel:]
        units.append(PlacedUnit(role=role, index=index, node=node, devices=devices))
    _refuse_idle(left, generators, tensor_parallel)
    return tuple(units)


def split(nodes: int, *, trainers: int, generators: int, tensor_parallel: int = 1) -> tuple[int, ...]:
    """Devices per node for machines without a fixed number of them (CPUs): about equal, each with work.

    >>> split(2, trainers=2, generators=4)
    (3, 3)

    Raises ValueError if there are fewer units than nodes.
    """
    if trainers + generators < nodes:
        raise ValueError(f"{trainers + generators} trainers and generators cannot occupy {nodes} nodes; ask for fewer")
    counts = []
    for later in range(nodes - 1, -1, -1):
        share = -(-(trainers + generators * tensor_parallel) // (later + 1))
        most = trainers + generators - later  # every later node needs a unit
        own_trainers = min(trainers, share, most)
        room = max(0, share - own_trainers) // tensor_parallel
        own_generators = min(generators, most - own_trainers, max(room, 0 if own_trainers else 1))
        if later == 0:
            own_trainers, own_generators = trainers, generators
        counts.append(own_trainers + own_generators * tensor_parallel)
        trainers, generators = trainers - own_trainers, generators - own_generators
    return tuple(counts)


def _refuse_idle(left: dict[int, list[int]], generators: int, tensor_parallel: int) -> None:
    """Raises ValueError if a device has no work; names the number of generators that would use all devices."""
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
        f"{counted(count, 'device')} would have no work ({where}) but cost as much; {way}, or ask for fewer devices"
    )


def _total(free: list[list[int]]) -> str:
    """Text such as `7 devices (3 on node 0, 4 on node 1)`."""
    by_node = ", ".join(f"{len(devices)} on node {node}" for node, devices in enumerate(free))
    return f"{counted(sum(map(len, free)), 'device')} ({by_node})"
