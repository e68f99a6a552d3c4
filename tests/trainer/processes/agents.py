"""Nodes of one machine for tests: agents as processes, and units that do something simple."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

from reaper import marked

from scalerl.cluster.placement import NodeOfRun


def place(node: int, nodes: int, allocation: str = "1.0") -> NodeOfRun:
    """A node of this machine."""
    return NodeOfRun(node=node, nodes=nodes, allocation=allocation, name=f"fake{node}", hosts=("127.0.0.1",))


@contextmanager
def agents(run: Path, nodes: int, *, allocation: str = "1.0") -> Iterator[list[subprocess.Popen[bytes]]]:
    """The agents of nodes 1 and up, as processes that end with the block, with all that they have started."""
    mark = f"TEST_AGENTS={run}.{time.monotonic_ns()}"
    name, _, value = mark.partition("=")
    started = []
    try:
        for node in range(1, nodes):
            orders = {"run": str(run), "node": node, "nodes": nodes, "allocation": allocation, "name": f"fake{node}"}
            started.append(
                subprocess.Popen(
                    [sys.executable, "-m", "scalerl.processes.agent", json.dumps(orders | {"hosts": ["127.0.0.1"]})],
                    env={**os.environ, name: value, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                    start_new_session=True,
                )
            )
        yield started
    finally:
        for agent in started:
            agent.kill()
            agent.wait()
        for process in marked(mark):
            with suppress(ProcessLookupError):
                os.kill(process, 9)


def echo(connection: Connection) -> None:
    """Say where it runs, then say again all that is said."""
    connection.send((os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES")))
    while True:
        connection.send(connection.recv())


def with_a_child(connection: Connection) -> None:
    """Start a process of its own and say both numbers."""
    child = subprocess.Popen(["sleep", "600"])
    connection.send((os.getpid(), child.pid))
    echo(connection)


def end_by_itself(connection: Connection) -> None:
    """Say one word, then end with a code."""
    connection.send("before")
    os._exit(3)


def is_alive(process: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def parent_of(process: int) -> int:
    """The process that started it."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def children_of(process: int | None) -> list[int]:
    """What a process has started, the first first; nothing of one that has ended."""
    with suppress(OSError):
        return sorted(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))
    return []


def unit_processes(process: int | None) -> list[int]:
    """Those of them that multiprocessing started: the units of a run on one node."""
    found = []
    for child in children_of(process):
        with suppress(OSError):  # it has ended since
            found += [child] if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes() else []
    return found
