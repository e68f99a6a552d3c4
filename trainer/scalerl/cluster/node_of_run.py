"""The node of a run that a process is on; imports no torch, so that the platform can make it."""

from dataclasses import dataclass


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
    """Name for people."""
    hosts: tuple[str, ...] = ()
    """Known names or addresses of node 0, which are tried first."""

    def __post_init__(self) -> None:
        assert 0 <= self.node < self.nodes, self
