"""Which of a run's nodes a process is on; nothing here imports torch, so that the platform makes it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NodeOfRun:
    """`NodeOfRun(node=1, nodes=4, allocation="17.0", name="n2", hosts=("10.0.0.11",))`.

    The coordinator is on node 0; every other node has an agent.
    """

    node: int
    nodes: int
    allocation: str
    """The job and how often it was started: those of one attempt meet."""
    name: str
    """For people."""
    hosts: tuple[str, ...] = ()
    """Names or addresses of node 0 that are known beforehand; tried first."""

    def __post_init__(self) -> None:
        assert 0 <= self.node < self.nodes, self
