"""Launcher for units on several nodes: children of this process on node 0, children of agents elsewhere."""

import itertools
import os
import threading
from multiprocessing.connection import Connection

from scalerl.cluster.placement import PlacedUnit
from scalerl.processes.authenticated import hang_up
from scalerl.processes.coordinator import Coordinator, RemoteUnit
from scalerl.processes.launch import BURIAL_LIMIT_S, Body, LocalLauncher


class AgentLauncher:
    """Starts units on the nodes of a coordinator whose agents have connected."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator, self._local = coordinator, LocalLauncher()
        self._counts = itertools.count(1)
        if interface := coordinator.interface:
            # Processes of this node talk to those of other nodes, not only to each other.
            os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)

    def start(self, unit: PlacedUnit, work: bytes) -> Body:
        """Start a process on the unit's node; if the node has no agent, the process is dead from the start."""
        if unit.node == 0:
            return self._local.start(unit, work)
        ticket = f"{unit.name} ({next(self._counts)})"
        return AgentBody(self._coordinator, ticket, self._coordinator.start(ticket, unit.node, unit.devices, work))

    def reaches(self, unit: PlacedUnit) -> bool:
        """True if the unit's node has an agent."""
        return self._coordinator.reaches(unit.node)

    def node_name(self, unit: PlacedUnit) -> str:
        """Name of the unit's node, for people."""
        return self._coordinator.node_name(unit.node)


class AgentBody:
    """A process started by an agent."""

    def __init__(self, coordinator: Coordinator, ticket: str, unit: RemoteUnit) -> None:
        self._coordinator, self._ticket, self._unit = coordinator, ticket, unit

    @property
    def process_id(self) -> int:
        """Process id on its own node."""
        return self._unit.process_id

    def connect(self) -> Connection:
        """Return the connection once the process has called."""
        return self._coordinator.connection(self._unit)

    def kill(self) -> None:
        """Have the agent kill the process; if that fails, cut the connection, at which the process ends itself."""
        self._coordinator.end(self._ticket)
        if self._unit.code is None:
            last_resort = threading.Timer(BURIAL_LIMIT_S, self._hang_up)
            last_resort.daemon = True
            last_resort.start()

    def _hang_up(self) -> None:
        if self._unit.code is None and self._unit.connection:
            hang_up(self._unit.connection)

    def bury(self) -> int | None:
        """Return the exit code reported by the agent, which has ended the whole process group."""
        return self._coordinator.code(self._unit, BURIAL_LIMIT_S)
