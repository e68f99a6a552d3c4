"""What one attempt at a run requests of a Ray cluster, and what its nodes need to know: a file in the attempt's folder.

    sweeps/loo/ray/20261127-023012-81d2f0a95c3b-1f0c9a/
      order.json      the order
      0_log.out       what the process on node 0 of the run printed before and after training

Nodes read the file where they are, which shows whether they share the home folder.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ablations.study.resources import Resources
from ablations.text import counted
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import write_atomically

ORDER_FILE = "order.json"


@dataclass(frozen=True, kw_only=True)
class NodeShare:
    """What a run requests of each of its nodes: `NodeShare(nodes=2, cpus=8, gpus=4, memory_bytes=2**32)`."""

    nodes: int
    cpus: int
    gpus: int
    gpu_kind: str
    """Ray's name for the kind of the GPUs; empty for any."""
    memory_bytes: int

    def __str__(self) -> str:
        kind = f" of kind {self.gpu_kind}" if self.gpu_kind else ""
        gpus = f"{counted(self.gpus, 'GPU')}{kind}, " if self.gpus else ""
        return (
            f"{counted(self.nodes, 'node')} with {gpus}{counted(self.cpus, 'CPU')} and {self.memory_bytes / 2**30:g} GB"
        )

    @property
    def resources(self) -> dict[str, float]:
        """The share of one node in Ray's names: `{"CPU": 8, "memory": 4294967296}`."""
        kind = {f"accelerator_type:{self.gpu_kind}": 0.001} if self.gpu_kind else {}
        return {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory_bytes, **kind}


def share_of(resources: Resources, *, threads: int) -> NodeShare:
    """The share that a `resources:` block requests; `threads` is the number of processors if it names none."""
    kind = str(resources.gpus).rpartition(":")[0]
    return NodeShare(
        nodes=resources.nodes,
        cpus=resources.cpus or threads,
        gpus=resources.num_gpus,
        gpu_kind=kind.upper(),
        memory_bytes=round(resources.mem_gb * 2**30),
    )


@dataclass(frozen=True, kw_only=True)
class RayOrder:
    """One attempt at a run."""

    run: Path
    """The run's folder."""
    warm_starts: Path
    budget_gpu_hours: float
    share: NodeShare
    threads: int
    """CPU threads of one process."""
    snapshot: Path
    """The folder of the code."""
    directory: Path
    """The folder in which the command was started, where relative paths begin."""
    allocation: str
    """A name for this attempt, the same on all of its nodes."""

    def write(self, attempt: Path) -> None:
        """Write the order into the folder of the attempt, which is created."""
        attempt.mkdir(parents=True)
        write_atomically(attempt / ORDER_FILE, json.dumps(asdict(self), default=str, indent=1).encode())


def read_order(attempt: Path) -> RayOrder:
    """The order in the folder of an attempt."""
    content = parsed_json((attempt / ORDER_FILE).read_bytes())
    paths = {name: Path(content[name]) for name in ("run", "warm_starts", "snapshot", "directory")}
    return RayOrder(**content | paths | {"share": NodeShare(**content["share"])})


def node_log(attempt: Path, node: int) -> Path:
    """The file for what a node's process prints before and after training."""
    return attempt / f"{node}_log.out"


def places_on(node: Mapping[str, float], share: NodeShare) -> int:
    """Number of a run's nodes that fit on this node of the cluster at once.

    >>> share = NodeShare(nodes=1, cpus=1, gpus=4, gpu_kind="", memory_bytes=0)
    >>> places_on({"CPU": 16.0, "GPU": 8.0, "memory": 1e12}, share)
    2
    """
    asked = {name: amount for name, amount in share.resources.items() if amount}
    return min((int(node.get(name, 0.0) / amount) for name, amount in asked.items()), default=0)


def runs_at_once(nodes: Sequence[Mapping[str, float]], share: NodeShare) -> int:
    """How many runs fit at once; each node of a run is a different node of the cluster."""
    places = [places_on(node, share) for node in nodes]
    runs = sum(places) // share.nodes
    while runs and sum(min(number, runs) for number in places) < runs * share.nodes:
        runs -= 1
    return runs


def why_none(nodes: Sequence[Mapping[str, float]], share: NodeShare) -> str:
    """The reason why not even one run fits, to show to the user."""
    fitting = sum(places_on(node, share) > 0 for node in nodes)
    there = f"of {counted(len(nodes), 'node')} of the Ray cluster {fitting or 'none'} can hold that"
    return f"a run needs {share}, and {there}"
