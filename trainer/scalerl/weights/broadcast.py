"""A store in the memory of every node of a run: ranks write to their own node's, and nodes pass publications on.

    node 0   trainer 0   trainer 1       ranks write their shares to the memory of their own node
    node 1   trainer 2   generator 0     a node with generators takes the shares of all other nodes with ranks,
    node 2   generator 1 generator 2     and passes on what it has taken, in a tree for each share:
    node 3   generator 3 generator 4
                                         node 0's: 0 -> 1, then 0 -> 3 while 1 -> 2;  node 1's: 1 -> 2, 1 -> 3

A publication can be fetched on a node once the node has all shares. Its generators are told then, without waiting for
other nodes. A node that a share cannot reach takes weights from a folder from then on, which node 0 writes.

The contract is that of the shared memory (`scalerl.weights.shared_memory`): places are written only when no generator
reads them, seals come last, and whoever fetches checks every checksum. So whatever breaks, a generator refuses an
incomplete publication by name, or finds it in the folder.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from scalerl.weights.folder import FolderStore
from scalerl.weights.hugging_face import Weights
from scalerl.weights.node_memory import NodeMemory, Share
from scalerl.weights.shared_memory import SharedMemoryStore
from scalerl.weights.store import UnusablePublication, WeightStore, names_of_rank

LAST_BROADCAST_LIMIT_S = 5.0
"""Time for a broadcast to end before its folder is deleted."""


class Keepers(Protocol):
    """The keepers of all nodes, as the first node's process sees them."""

    memory: NodeMemory
    """Memory of the first node."""

    def reaches(self, node: int) -> bool:
        """True if the node has a keeper."""
        ...

    def node_name(self, node: int) -> str:
        """Name of the node, for messages."""
        ...

    def carry(self, share: Share, giver: int, taker: int) -> None:
        """Wait until a node has received a share from another; raises OSError with the reason if it does not arrive,
        and TimeoutError if there is no answer."""


class NodeStore(WeightStore):
    """The store as a unit sees it: the memory of its node, and a folder for what did not arrive there."""

    def __init__(self, memory: SharedMemoryStore, folder: FolderStore) -> None:
        self.memory, self.folder = memory, folder

    def publish(self, publication: int, version: int, weights: Weights, *, rank: int = 0, ranks: int = 1) -> None:
        self.memory.publish(publication, version, weights, rank=rank, ranks=ranks)

    def fetch(self, publication: int, version: int) -> Weights:
        """Tensors of the publication, checked; those from memory are views."""
        try:
            return self.memory.fetch(publication, version)
        except UnusablePublication:
            if not self.folder.has(publication):
                raise
        return self.folder.fetch(publication, version)

    def close(self) -> None:
        self.folder.close()


class BroadcastStore(NodeStore):
    """The store as the coordinator sees it; pickled for a unit, it becomes a NodeStore."""

    def __init__(
        self, weights: Weights, keepers: Keepers, folder: Path, *, ranks: Sequence[int], readers: Iterable[int]
    ) -> None:
        """`ranks` are the nodes of the learner's ranks, in order; `readers` the nodes with generators."""
        super().__init__(SharedMemoryStore(weights, keepers.memory), FolderStore(folder, weights))
        self._keepers, self._readers = keepers, sorted(set(readers))
        self._names: dict[int, set[str]] = {node: set() for node in ranks}
        """Names of the tensors that ranks of a node publish."""
        for rank, node in enumerate(ranks):
            self._names[node].update(names_of_rank(self.memory.names, rank, len(ranks)))
        self._cut_off: set[int] = set()
        """Nodes that take weights from the folder."""
        self._lock = threading.Lock()
        """Lock of the two fields below."""
        self._missing: dict[int, set[int]] = {}
        """Nodes whose shares a reader has yet to receive."""
        self._told: dict[int, list[Callable[[], None]]] = {}
        """Calls to make when a node has the publication."""
        self._thread: threading.Thread | None = None

    def __reduce__(self) -> tuple[type[NodeStore], tuple[SharedMemoryStore, FolderStore]]:
        return NodeStore, (self.memory, self.folder)

    @property
    def is_broadcasting(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def broadcast(self, publication: int, version: int) -> None:
        assert not self.is_broadcasting, publication
        with self._lock:
            self._missing = {node: self._names.keys() - {node} for node in self._readers}
        self._thread = threading.Thread(target=self._broadcast, args=(publication, version), daemon=True)
        self._thread.start()

    def when_at(self, node: int, then: Callable[[], None]) -> None:
        """Call `then` once the publication is on that node, or in the folder."""
        with self._lock:
            if self._missing[node]:
                self._told.setdefault(node, []).append(then)
                return
        then()

    def fetch(self, publication: int, version: int) -> Weights:
        """Tensors of the publication in this node's memory, once they have come from the nodes of all ranks."""
        self._wait()
        return self._fetch(publication, version)

    def close(self) -> None:
        self._wait(LAST_BROADCAST_LIMIT_S)
        super().close()

    def _wait(self, limit_s: float | None = None) -> None:
        """Wait for the end of a broadcast, each of whose transfers has a limit."""
        if self._thread is not None:
            self._thread.join(limit_s)

    def _fetch(self, publication: int, version: int) -> Weights:
        try:
            return self.memory.fetch(publication, version)
        except UnusablePublication:
            others = self._names.keys() - {0}
            if not others:
                raise
        for node in others:
            try:
                self._keepers.carry(self._share(publication, node), node, 0)
            except OSError as error:
                raise UnusablePublication(
                    f"publication {publication} did not arrive from {self._keepers.node_name(node)}: {error}"
                ) from error
        return self.memory.fetch(publication, version)

    def _share(self, publication: int, node: int) -> Share:
        return self.memory.share(publication, self._names[node])

    def _broadcast(self, publication: int, version: int) -> None:
        try:
            trees = [
                threading.Thread(
                    target=self._pass_on,
                    args=(self._share(publication, node), node, node, [one for one in self._readers if one != node]),
                )
                for node in self._names
            ]
            for tree in trees:
                tree.start()
            for tree in trees:
                tree.join()
            if any(self._keepers.reaches(node) for node in self._cut_off):
                self.folder.publish(publication, version, self._fetch(publication, version))
        except (OSError, UnusablePublication) as error:
            print(f"publication {publication} is not in the folder for other nodes: {error}", flush=True)
        finally:
            for node in self._readers:
                self._arrived(node, set(self._names))

    def _pass_on(self, share: Share, origin: int, giver: int, takers: Sequence[int]) -> None:
        """Bring a share from a node to others: the first passes it on to half of the rest, the giver to the other."""
        lines: list[threading.Thread] = []
        while takers:
            taker, rest = takers[0], takers[1:]
            if not self._carry(share, origin, giver, taker):
                takers = rest
                continue
            self._arrived(taker, {origin})
            half, takers = rest[: len(rest) // 2], rest[len(rest) // 2 :]
            lines.append(threading.Thread(target=self._pass_on, args=(share, origin, taker, half)))
            lines[-1].start()
        for line in lines:
            line.join()

    def _carry(self, share: Share, origin: int, giver: int, taker: int) -> bool:
        """True if the node now has the share, from the giver or else from the node of its ranks."""
        for source in (giver, origin):
            if taker in self._cut_off or not self._keepers.reaches(taker):
                return False
            try:
                self._keepers.carry(share, source, taker)
                return True
            except OSError as error:
                names = self._keepers.node_name(taker), self._keepers.node_name(source)
                print(f"{names[0]} cannot take weights from {names[1]}: {error}", flush=True)
                if isinstance(error, TimeoutError):
                    break
        if self._keepers.reaches(taker) and taker not in self._cut_off:
            self._cut_off.add(taker)
            print(f"{self._keepers.node_name(taker)} takes weights from {self.folder.folder} from now on", flush=True)
        return False

    def _arrived(self, node: int, shares: set[int]) -> None:
        """Note that a node has the shares of these nodes; if no other is missing, its generators are told."""
        with self._lock:
            self._missing[node] -= shares
            told = [] if self._missing[node] else self._told.pop(node, [])
        for then in told:
            then()
