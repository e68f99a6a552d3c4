"""The agent of a node: starts, watches and ends processes there, as the coordinator of the run says.

python -m scalerl.processes.agent '{"run": "...", "node": 1, "nodes": 4, "allocation": "17.0", "name": "n2"}'

It finds the coordinator by the meeting file of the run folder. Signals do not end it: the coordinator, which gets them
too, writes its checkpoint first and then lets its agents go. When the connection to the coordinator closes, for
whatever reason, the agent ends all that it has started, and then itself.
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
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from scalerl.cluster.node_of_run import NodeOfRun
from scalerl.errors import Interrupted
from scalerl.processes.agent_messages import (
    EndUnit,
    Exited,
    FirstWord,
    FromAgent,
    Hello,
    Leave,
    Started,
    StartUnit,
    packed,
    unpacked,
)
from scalerl.processes.authenticated import call, give_up_soon, interface_of, own_address
from scalerl.processes.launch import VISIBLE, end_group
from scalerl.processes.meeting_file import MeetingIsOver, MeetingPoint, read_meeting

MEET_LIMIT_S = 900.0
"""For the coordinator to be there: its node may start later than this one."""
LOOK_EVERY_S = 0.2
CANNOT_START = 127
"""The exit code of a process that the system does not start, as a shell would say."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What Slurm, its users and terminals send to all processes of a job; those that the agent starts ignore them too."""


def serve_node(run: Path, place: NodeOfRun, *, begin: Callable[[int], None] = lambda _: None) -> bool:
    """Be the agent of a node until the attempt is over. Interrupted where it does not begin.

    Returns whether the coordinator has ended it; else that is gone. `begin` is called with the number of the attempt,
    before anything is started.
    """
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    try:
        met = _meet(run, place)
    except MeetingIsOver as error:
        print(error, flush=True)
        return True
    begin(met.point.attempt)
    print(f"node {place.node} ({place.name}): met the coordinator at {met.host}", flush=True)
    was_let_go = Agent(met, place).work()
    how = "the coordinator has ended the attempt" if was_let_go else "the connection to the coordinator is broken"
    print(f"node {place.node} ({place.name}): {how}", flush=True)
    return was_let_go


@dataclass(frozen=True, kw_only=True)
class Met:
    """The coordinator, and how it was reached."""

    connection: Connection
    point: MeetingPoint
    host: str


def _meet(run: Path, place: NodeOfRun) -> Met:
    """Call every address in turn until one answers; another attempt's coordinator does not know the key."""
    limit, said = time.monotonic() + MEET_LIMIT_S, "no meeting file of this attempt"
    while time.monotonic() < limit:
        if point := read_meeting(run, place.allocation):
            for host in dict.fromkeys((*place.hosts, *point.hosts)):
                try:
                    connection = call(host, point.port, point.key)
                except Exception as error:  # not there, another program, or another attempt's: the next, then again
                    said = f"{host}:{point.port}: {type(error).__name__}: {error}"
                else:
                    return Met(connection=connection, point=point, host=host)
        time.sleep(LOOK_EVERY_S)
    raise Interrupted(
        f"node {place.node} ({place.name}) did not find the coordinator of {run} within {MEET_LIMIT_S:.0f} s: {said}"
    )


class Agent:
    """The processes of this node, and the connection to the coordinator."""

    def __init__(self, met: Met, place: NodeOfRun) -> None:
        self._met = met
        self._connection, self._sending = met.connection, threading.Lock()
        give_up_soon(met.connection)
        self._units: dict[str, subprocess.Popen[bytes]] = {}
        self._watchers: list[threading.Thread] = []
        self._environment = environment_between_nodes(own_address(met.connection))
        self._say(
            Hello(
                node=place.node,
                name=place.name,
                devices=num_devices(os.environ),
                host=met.host,
                process_id=os.getpid(),
            )
        )

    def work(self) -> bool:
        """Obey until the coordinator says that it is over, or is gone; then nothing that was started is left.

        Returns whether it has said so.
        """
        try:
            while not isinstance(order := unpacked(self._connection.recv_bytes()), Leave):
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

    def _obey(self, order: StartUnit | EndUnit) -> None:
        match order:
            case StartUnit():
                self._start(order)
            case EndUnit() if order.ticket in self._units:
                kill_group(self._units[order.ticket])

    def _start(self, order: StartUnit) -> None:
        point = self._met.point
        try:
            unit = subprocess.Popen(
                [sys.executable, "-m", "scalerl.processes.started"],
                stdin=subprocess.PIPE,
                env=self._environment,
                process_group=0,
            )
        except OSError as error:
            print(f"{order.ticket}: cannot be started: {error}", flush=True)
            self._say(Exited(ticket=order.ticket, code=CANNOT_START))
            return
        # By its input and not as an argument: arguments can be read by everybody on the node.
        card = {
            "host": self._met.host,
            "port": point.port,
            "key": point.key.hex(),
            "ticket": order.ticket,
            "devices": order.devices,
        }
        assert unit.stdin is not None
        with suppress(BrokenPipeError):  # it has ended already, which the watcher tells
            unit.stdin.write(json.dumps(card).encode() + b"\n")
            unit.stdin.flush()
        self._units[order.ticket] = unit
        self._say(Started(ticket=order.ticket, process_id=unit.pid))
        watcher = threading.Thread(target=self._watch, args=(order.ticket, unit), daemon=True)
        self._watchers.append(watcher)
        watcher.start()

    def _watch(self, ticket: str, unit: subprocess.Popen[bytes]) -> None:
        """Wait for its end, and end what it leaves behind."""
        os.waitid(os.P_PID, unit.pid, os.WEXITED | os.WNOWAIT)
        kill_group(unit)  # before it is reaped: afterwards its number may be another's
        code = unit.wait()
        assert unit.stdin is not None
        with suppress(OSError):
            unit.stdin.close()
        with suppress(OSError):  # the coordinator is gone
            self._say(Exited(ticket=ticket, code=code))

    def _say(self, message: FromAgent | FirstWord) -> None:
        with self._sending:
            self._connection.send_bytes(packed(message))


def kill_group(leader: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads a group, and the group; nothing once it has been reaped."""
    if leader.returncode is None:
        end_group(leader.pid)


def num_devices(variables: Mapping[str, str]) -> int:
    """GPUs that this process may give away: those that CUDA_VISIBLE_DEVICES names, else all of the node."""
    named = variables.get(VISIBLE)
    return torch.cuda.device_count() if named is None else sum(map(bool, named.split(",")))


def environment_between_nodes(address: str) -> dict[str, str]:
    """This process's, for processes that talk to other nodes by the network that has `address`."""
    found = interface_of(address)
    own = {"GLOO_SOCKET_IFNAME": found} if found else {}
    paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return {**own, **os.environ, **paths}


if __name__ == "__main__":
    orders = json.loads(sys.argv[1])
    folder = Path(orders.pop("run"))
    serve_node(folder, NodeOfRun(**orders | {"hosts": tuple(orders.get("hosts", ()))}))
