"""Where units are started that lie on several nodes: on node 0 as children of this process, elsewhere by agents."""

import itertools
import os
import threading
from multiprocessing.connection import Connection

from scalerl.cluster.placement import PlacedUnit
from scalerl.processes.authenticated import hang_up
from scalerl.processes.coordinator import Coordinator, Errand
from scalerl.processes.launch import BURIAL_LIMIT_S, Body, LocalLauncher


class AgentLauncher:
    """Starts the processes of units on the nodes of a coordinator, whose agents have come."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator, self._local = coordinator, LocalLauncher()
        self._counts = itertools.count(1)
        if interface := coordinator.interface:
            # Its own processes talk to those of other nodes, not only to each other.
            os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)

    def start(self, unit: PlacedUnit, work: bytes) -> Body:
        """A new process on the unit's node; without an agent there it is dead from the start."""
        if unit.node == 0:
            return self._local.start(unit, work)
        ticket = f"{unit.name} ({next(self._counts)})"
        return AgentBody(self._coordinator, ticket, self._coordinator.start(ticket, unit.node, unit.devices, work))

    def reaches(self, unit: PlacedUnit) -> bool:
        """Whether the unit's node has an agent."""
        return self._coordinator.reaches(unit.node)

    def node_name(self, unit: PlacedUnit) -> str:
        """What people call the node of the unit."""
        return self._coordinator.node_name(unit.node)

    def close(self) -> None:
        """Nothing to do: the agents go when the coordinator lets them."""


class AgentBody:
    """A child of an agent."""

    def __init__(self, coordinator: Coordinator, ticket: str, errand: Errand) -> None:
        self._coordinator, self._ticket, self._errand = coordinator, ticket, errand

    @property
    def process_id(self) -> int:
        """On its own node."""
        return self._errand.process_id

    def connect(self) -> Connection:
        """As soon as it has called."""
        return self._coordinator.connection(self._errand)

    def kill(self) -> None:
        """By its agent; where that does not act, the connection is cut, which the process takes for its end."""
        self._coordinator.end(self._ticket)
        if self._errand.code is None:
            last_resort = threading.Timer(BURIAL_LIMIT_S, self._hang_up)
            last_resort.daemon = True
            last_resort.start()

    def _hang_up(self) -> None:
        if self._errand.code is None and self._errand.connection:
            hang_up(self._errand.connection)

    def bury(self) -> int | None:
        """What its agent says; the agent has ended what it had started."""
        return self._coordinator.code(self._errand, BURIAL_LIMIT_S)
