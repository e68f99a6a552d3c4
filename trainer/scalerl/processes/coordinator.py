"""The coordinator's side of the agents: which have connected, their processes, and which are gone.

    coordinator = Coordinator(run, place)    listens at the address in the meeting file
    coordinator.await_agents()
    coordinator.start(unit, work)            on node 0 a child of this process, elsewhere an agent's
    coordinator.close()

If an agent dies, its processes notice and end themselves. Their connections are cut here too, so the death of a node
is noticed at once. A dead agent never reconnects.
"""

import itertools
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from scalerl.cluster.placement import NodeOfRun, PlacedUnit
from scalerl.errors import Interrupted
from scalerl.processes.authenticated import (
    call,
    give_up_soon,
    hang_up,
    listen_on,
    serve_callers,
    use_interface,
)
from scalerl.processes.launch import BURIAL_LIMIT_S, Body, Launcher, LocalLauncher
from scalerl.processes.meeting_file import MeetingPoint, write_ended, write_meeting
from scalerl.processes.messages import (
    MOST_MESSAGE_BYTES,
    Called,
    EndUnit,
    Exited,
    Hello,
    Leave,
    Started,
    StartUnit,
    ToAgent,
    from_bytes,
    to_bytes,
)
from scalerl.weights.broadcast import Keepers
from scalerl.weights.keeper import TakeShare, Took, WeightKeeper
from scalerl.weights.node_memory import Share

AGENTS_LIMIT_S = 900.0
"""Time limit for all agents to connect: the first import of torch on a node can take minutes."""
LEAVE_LIMIT_S = 30.0
"""Time limit for an agent to end its processes and itself."""
CALL_LIMIT_S = 300.0
"""Time limit for a started process to call: importing torch comes first."""


@dataclass(kw_only=True)
class AgentLine:
    """The agent of one node."""

    hello: Hello
    connection: Connection
    is_there: bool = True
    sending: threading.Lock = field(default_factory=threading.Lock)

    def say(self, message: ToAgent) -> None:
        """Send a message; does nothing if the agent is gone, since callers learn that elsewhere."""
        with suppress(OSError), self.sending:
            self.connection.send_bytes(to_bytes(message))


class AgentBody(Body):
    """A process that an agent starts; on a node without an agent it counts as dead."""

    def __init__(self, coordinator: "Coordinator", ticket: str, node: int, work: bytes) -> None:
        self._coordinator, self.ticket, self.node = coordinator, ticket, node
        self.work = work
        """Work to send when the process calls."""
        self.process_id = 0
        self.connection: Connection | None = None
        self.code: int | None = None
        """Exit code; None while the process runs."""

    @property
    def is_gone(self) -> bool:
        """True if the process has ended, or its node has no agent."""
        return self.code is not None or not self._coordinator.reaches(self.node)

    def connect(self) -> Connection:
        """Return the connection once the process has called; EOFError if the process ends first."""
        self._coordinator.wait(lambda: self.connection is not None or self.is_gone, CALL_LIMIT_S)
        if self.connection is None:
            raise EOFError("the process ended before it connected")
        return self.connection

    def kill(self) -> None:
        """Have the agent kill the process; if that fails, cut the connection, which makes the process end itself."""
        if self.code is None:
            self._coordinator.tell(self.node, EndUnit(ticket=self.ticket))
            last_resort = threading.Timer(BURIAL_LIMIT_S, self._hang_up)
            last_resort.daemon = True
            last_resort.start()

    def _hang_up(self) -> None:
        if self.code is None and self.connection:
            hang_up(self.connection)

    def bury(self) -> int | None:
        self._coordinator.wait(lambda: self.is_gone, BURIAL_LIMIT_S)
        return self.code


class Coordinator(Launcher, Keepers):
    """Listens for agents and for the processes they have started, and starts the units of a run."""

    def __init__(self, run: Path, place: NodeOfRun, *, attempt: int = 1, listen: str = "") -> None:
        """Serve one attempt of the run in this folder. `listen` is the only address to listen on; "" means all."""
        assert place.node == 0, place
        self.run, self.place = run, place
        self._key, self._socket = secrets.token_bytes(32), listen_on(listen)
        self._keeper = WeightKeeper(partial(call, key=self._key))
        self.memory, self._carries = self._keeper.memory, itertools.count(1)
        self._local, self._tickets = LocalLauncher(), itertools.count(1)
        self._state = threading.Condition()
        """Lock for all fields below; notified of every change."""
        self._agents: dict[int, AgentLine] = {}
        self._units: dict[str, AgentBody] = {}
        self._took: dict[int, str] = {}
        """Faults of transfers that have ended, by number; empty if there was none."""
        self._is_over = False
        hosts = (listen,) if listen else (*place.hosts, socket.gethostname(), *_addresses())
        point = MeetingPoint(
            hosts=tuple(dict.fromkeys(hosts)), port=self._socket.getsockname()[1], key=self._key, attempt=attempt
        )
        threading.Thread(target=serve_callers, args=(self._socket, self._key, self._serve), daemon=True).start()
        write_meeting(run, place.allocation, point)

    def close(self) -> None:
        """Dismiss the agents and end their processes; the meeting file turns late agents away."""
        with self._state:
            if self._is_over:
                return
            self._is_over = True
        write_ended(self.run, self.place.allocation)
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for agent in self._agents.values():
            agent.say(Leave())
        with self._state:
            self._state.wait_for(lambda: not any(agent.is_there for agent in self._agents.values()), LEAVE_LIMIT_S)
        for agent in self._agents.values():
            hang_up(agent.connection)

    # --- nodes ------------------------------------------------------------------------------------------------------

    def await_agents(self) -> None:
        """Wait for an agent on every node; Interrupted if one does not connect, or has died.

        Processes of this node then talk to those of other nodes, not only to each other.
        """
        with self._state:
            self._state.wait_for(lambda: len(self._agents) == self.place.nodes - 1, AGENTS_LIMIT_S)
            missing = [node for node in range(1, self.place.nodes) if not self.reaches(node)]
        if missing:
            names = ", ".join(map(str, missing))
            raise Interrupted(
                f"of {self.place.nodes} nodes, these have no connected agent: {names}; agents have "
                f"{AGENTS_LIMIT_S:.0f} s to connect"
            )
        if agent := self._agents.get(1):
            use_interface(agent.connection)

    def reaches(self, node: int) -> bool:
        with self._state:
            return node == 0 or (node in self._agents and self._agents[node].is_there)

    def node_name(self, node: int) -> str:
        with self._state:
            return self._agents[node].hello.name if node in self._agents else self.place.name if node == 0 else ""

    @property
    def devices(self) -> list[int]:
        """Number of GPUs of each other node, in order."""
        with self._state:
            return [self._agents[node].hello.devices for node in range(1, self.place.nodes)]

    @property
    def host(self) -> str:
        """Address of this node for other nodes."""
        with self._state:
            return next(agent.hello.host for agent in self._agents.values())

    # --- processes --------------------------------------------------------------------------------------------------

    def start(self, unit: PlacedUnit, work: bytes) -> Body:
        """Start a process on the unit's node; if the node has no agent, the process is dead from the start."""
        if unit.node == 0:
            return self._local.start(unit, work)
        body = AgentBody(self, f"{unit.name} ({next(self._tickets)})", unit.node, work)
        with self._state:
            self._units[body.ticket] = body
        self.tell(unit.node, StartUnit(ticket=body.ticket, devices=unit.devices))
        return body

    def tell(self, node: int, order: ToAgent) -> None:
        """Send an order to the agent of a node, if there is one."""
        with self._state:
            agent = self._agents.get(node)
        if agent:
            agent.say(order)

    def wait(self, is_so: Callable[[], bool], limit_s: float) -> None:
        """Wait until `is_so()`, which is checked again whenever something has changed."""
        with self._state:
            self._state.wait_for(is_so, limit_s)

    # --- weights ----------------------------------------------------------------------------------------------------

    def carry(self, share: Share, giver: int, taker: int) -> None:
        number, hello = next(self._carries), self._agents[giver or taker].hello
        host, port = (hello.address, hello.port) if giver else (hello.host, self._socket.getsockname()[1])
        order = TakeShare(number=number, host=host, port=port, share=share)
        if taker == 0:
            self._note(self._keeper.take(order))
        else:
            self.tell(taker, order)
            self.wait(lambda: number in self._took or not self.reaches(taker), order.limit_s)
        if number not in self._took:
            raise TimeoutError(f"no answer within {order.limit_s:.0f} s")
        if fault := self._took.pop(number):
            raise ConnectionError(fault)

    # --- callers ----------------------------------------------------------------------------------------------------

    def _serve(self, connection: Connection) -> None:
        match from_bytes(connection.recv_bytes(MOST_MESSAGE_BYTES)):
            case Hello() as hello:
                self._serve_agent(AgentLine(hello=hello, connection=connection))
            case Called(ticket=ticket):
                self._give_work(connection, ticket)
            case Share() as share:
                self._keeper.give(connection, share)

    def _give_work(self, connection: Connection, ticket: str) -> None:
        unit = self._units[ticket]
        connection.send_bytes(unit.work)
        with self._state:
            unit.connection, unit.work = connection, b""
            if not self.reaches(unit.node):
                hang_up(connection)
            self._state.notify_all()

    def _serve_agent(self, agent: AgentLine) -> None:
        """Receive an agent's messages until it is gone."""
        node = agent.hello.node
        with self._state:
            if self._is_over or node in self._agents:
                agent.say(Leave())  # an agent given up earlier, whose processes are gone
                agent.connection.close()
                return
            self._agents[node] = agent
            give_up_soon(agent.connection)
            self._state.notify_all()
        print(f"node {node} ({agent.hello.name}) has joined with {agent.hello.devices} GPUs", flush=True)
        with suppress(EOFError, OSError):
            while True:
                said = from_bytes(agent.connection.recv_bytes(MOST_MESSAGE_BYTES))
                with self._state:
                    self._note(said)
                    self._state.notify_all()
        with self._state:
            agent.is_there = False
            for unit in self._units.values():
                if unit.node == node and unit.code is None and unit.connection:
                    hang_up(unit.connection)
            self._state.notify_all()
        if not self._is_over:
            print(f"node {node} ({agent.hello.name}) has lost its agent", flush=True)

    def _note(self, said: Started | Exited | Took) -> None:
        match said:
            case Started():
                self._units[said.ticket].process_id = said.process_id
            case Exited():
                self._units[said.ticket].code = said.code
            case Took():
                self._took[said.number] = said.fault


def _addresses() -> tuple[str, ...]:
    """IPv4 addresses of this node, without those of the loopback interface."""
    with suppress(OSError):
        found = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET, socket.SOCK_STREAM)
        return tuple(dict.fromkeys(str(one[4][0]) for one in found if not str(one[4][0]).startswith("127.")))
    return ()
