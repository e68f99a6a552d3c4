"""How many runs fit into a Ray cluster at a time."""

from collections.abc import Mapping, Sequence

from ablations.ray.order import NodeShare
from ablations.text import counted


def places_on(node: Mapping[str, float], share: NodeShare) -> int:
    """How many of a run's nodes this node of the cluster can be at a time.

    >>> share = NodeShare(nodes=1, cpus=1, gpus=4, gpu_kind="", memory_bytes=0)
    >>> places_on({"CPU": 16.0, "GPU": 8.0, "memory": 1e12}, share)
    2
    """
    asked = {name: amount for name, amount in share.resources.items() if amount}
    return min((int(node.get(name, 0.0) / amount) for name, amount in asked.items()), default=0)


def runs_at_once(nodes: Sequence[Mapping[str, float]], share: NodeShare) -> int:
    """How many runs fit at a time; the nodes of one run are different nodes of the cluster."""
    places = [places_on(node, share) for node in nodes]
    runs = sum(places) // share.nodes
    while runs and sum(min(number, runs) for number in places) < runs * share.nodes:
        runs -= 1
    return runs


def why_none(nodes: Sequence[Mapping[str, float]], share: NodeShare) -> str:
    """Why not even one run fits, for people."""
    fitting = sum(places_on(node, share) > 0 for node in nodes)
    there = f"of {counted(len(nodes), 'node')} of the Ray cluster {fitting or 'none'} can hold that"
    return f"a run needs {share}, and {there}"
