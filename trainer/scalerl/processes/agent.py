"""The agent of a node: starts, watches and ends processes there on the coordinator's orders, and keeps their weights.

python -m scalerl.processes.agent '{"run": "...", "node": 1, "nodes": 4, "allocation": "17.0", "name": "n2"}'

The agent finds the coordinator through the meeting file in the run folder. Signals do not end the agent: the
coordinator, which also receives them, writes its checkpoint first and then dismisses its agents. Whenever the
connection to the coordinator closes, the agent ends all processes it has started, and exits.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from scalerl.cluster.placement import NodeOfRun
from scalerl.errors import Interrupted
from scalerl.process_variables import VISIBLE_GPUS
from scalerl.processes.authenticated import call, give_up_soon, listen_on, own_address, serve_callers, use_interface
from scalerl.processes.launch import end_group
from scalerl.processes.meeting_file import MeetingIsOver, MeetingPoint, read_meeting
from scalerl.processes.messages import (
    MOST_MESSAGE_BYTES,
    EndUnit,
    Exited,
    FirstWord,
    FromAgent,
    Hello,
    Leave,
    Started,
    StartUnit,
    from_bytes,
    to_bytes,
)
from scalerl.signals import TO_ALL_PROCESSES
from scalerl.warden import warden
from scalerl.weights.keeper import TakeShare, WeightKeeper
from scalerl.weights.shared_memory import NODE_MEMORY

MEET_LIMIT_S = 900.0
"""Time to wait for the coordinator, whose node may start later than this one."""
LOOK_EVERY_S = 0.2
CANNOT_START = 127
"""Exit code of a process that cannot be started, as in a shell."""


def serve_node(run: Path, place: NodeOfRun, *, begin: Callable[[int], None] = lambda _: None) -> bool:
    """Serve as the agent of a node until the attempt is over; Interrupted if the attempt does not begin.

    Returns True if the coordinator ended the attempt, False if the coordinator is gone. `begin` is called with the
    number of the attempt before anything is started.
    """
    for number in TO_ALL_PROCESSES:  # what the agent starts ignores them too
        signal.signal(number, signal.SIG_IGN)
    try:
        connection, point = _meet(run, place)
    except MeetingIsOver as error:
        print(error, flush=True)
        return True
    begin(point.attempt)
    print(f"node {place.node} ({place.name}): met the coordinator at {point.hosts[0]}", flush=True)
    was_let_go = Agent(connection, point, place).work()
    how = "the coordinator has ended the attempt" if was_let_go else "the connection to the coordinator is broken"
    print(f"node {place.node} ({place.name}): {how}", flush=True)
    return was_let_go


def _meet(run: Path, place: NodeOfRun) -> tuple[Connection, MeetingPoint]:
    """Call every address in turn until one answers; return the connection, and the point with that address alone.

    Another attempt's coordinator does not know the key.
    """
    limit, said = time.monotonic() + MEET_LIMIT_S, "no meeting file of this attempt"
    while time.monotonic() < limit:
        if point := read_meeting(run, place.allocation):
            for host in dict.fromkeys((*place.hosts, *point.hosts)):
                try:
                    connection = call(host, point.port, point.key)
                except Exception as error:  # nothing there, another program, or another attempt's: try the next
                    said = f"{host}:{point.port}: {type(error).__name__}: {error}"
                else:
                    return connection, replace(point, hosts=(host,))
        time.sleep(LOOK_EVERY_S)
    raise Interrupted(
        f"node {place.node} ({place.name}) did not find the coordinator of {run} within {MEET_LIMIT_S:.0f} s: {said}"
    )


class Agent:
    """Processes of this node, and the connection to the coordinator."""

    def __init__(self, connection: Connection, point: MeetingPoint, place: NodeOfRun) -> None:
        self._connection, self._point, self._sending = connection, point, threading.Lock()
        give_up_soon(connection)
        self._units: dict[str, subprocess.Popen[bytes]] = {}
        self._watchers: list[threading.Thread] = []
        self._keeper, address = WeightKeeper(partial(call, key=point.key)), own_address(connection)
        listener = listen_on(address)
        threading.Thread(target=serve_callers, args=(listener, point.key, self._give), daemon=True).start()
        use_interface(connection)
        paths = os.pathsep.join(path for path in sys.path if path)
        self._environment = {**os.environ, "PYTHONPATH": paths, NODE_MEMORY: self._keeper.memory.where}
        self._say(
            Hello(
                node=place.node,
                name=place.name,
                devices=num_devices(os.environ),
                host=point.hosts[0],
                process_id=os.getpid(),
                address=address,
                port=listener.getsockname()[1],
            )
        )

    def work(self) -> bool:
        """Obey until the coordinator dismisses this agent or is gone; no started process is left running.

        Returns True if the coordinator dismissed the agent.
        """
        try:
            while not isinstance(order := from_bytes(self._connection.recv_bytes()), Leave):
                self._obey(order)
            return True
        except (EOFError, OSError):
            return False
        finally:
            for unit in self._units.values():
                kill_group(unit)
            for watcher in self._watchers:
                watcher.join()
            self._connection.close()

    def _obey(self, order: StartUnit | EndUnit | TakeShare) -> None:
        match order:
            case StartUnit():
                self._start(order)
            case EndUnit() if order.ticket in self._units:
                kill_group(self._units[order.ticket])
            case TakeShare():
                threading.Thread(target=self._take, args=(order,), daemon=True).start()

    def _take(self, order: TakeShare) -> None:
        with suppress(OSError):  # the coordinator is gone
            self._say(self._keeper.take(order))

    def _give(self, connection: Connection) -> None:
        self._keeper.give(connection, from_bytes(connection.recv_bytes(MOST_MESSAGE_BYTES)))

    def _start(self, order: StartUnit) -> None:
        try:
            unit = subprocess.Popen(
                [sys.executable, "-P", "-m", "scalerl.processes.started"],
                stdin=subprocess.PIPE,
                env=self._environment,
                process_group=0,
            )
        except OSError as error:
            print(f"{order.ticket}: cannot be started: {error}", flush=True)
            self._say(Exited(ticket=order.ticket, code=CANNOT_START))
            return
        warden.guard(unit.pid)
        # On stdin rather than as an argument: every user of the node can read arguments.
        card = {
            "host": self._point.hosts[0],
            "port": self._point.port,
            "key": self._point.key.hex(),
            "ticket": order.ticket,
            "devices": order.devices,
        }
        assert unit.stdin is not None
        with suppress(BrokenPipeError):  # the process has ended already, which the watcher reports
            unit.stdin.write(json.dumps(card).encode() + b"\n")
            unit.stdin.flush()
        self._units[order.ticket] = unit
        self._say(Started(ticket=order.ticket, process_id=unit.pid))
        watcher = threading.Thread(target=self._watch, args=(order.ticket, unit), daemon=True)
        self._watchers.append(watcher)
        watcher.start()

    def _watch(self, ticket: str, unit: subprocess.Popen[bytes]) -> None:
        """Wait for the process to end, then end whatever it has started."""
        os.waitid(os.P_PID, unit.pid, os.WEXITED | os.WNOWAIT)
        kill_group(unit)  # before it is reaped: afterwards its id may be another's
        code = unit.wait()
        warden.release(unit.pid)
        assert unit.stdin is not None
        with suppress(OSError):
            unit.stdin.close()
        with suppress(OSError):  # the coordinator is gone
            self._say(Exited(ticket=ticket, code=code))

    def _say(self, message: FromAgent | FirstWord) -> None:
        with self._sending:
            self._connection.send_bytes(to_bytes(message))


def kill_group(leader: subprocess.Popen[bytes]) -> None:
    """Kill a process group and its leader; does nothing once the leader has been reaped."""
    if leader.returncode is None:
        end_group(leader.pid)


def num_devices(variables: Mapping[str, str]) -> int:
    """Number of GPUs available to this agent: those in CUDA_VISIBLE_DEVICES, or else all of the node."""
    named = variables.get(VISIBLE_GPUS)
    return torch.cuda.device_count() if named is None else sum(map(bool, named.split(",")))


if __name__ == "__main__":
    orders = json.loads(sys.argv[1])
    folder = Path(orders.pop("run"))
    serve_node(folder, NodeOfRun(**orders | {"hosts": tuple(orders.get("hosts", ()))}))
