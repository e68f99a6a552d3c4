"""What a push of weights to other nodes costs, through a folder and from memory to memory; see `weight_push.py`."""

import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from scalerl.cluster.placement import NodeOfRun, PlacedUnit
from scalerl.processes.coordinator import Coordinator
from scalerl.weights.broadcast import BroadcastStore
from scalerl.weights.folder import FolderStore
from scalerl.weights.hugging_face import Weights
from scalerl.weights.store import WeightStore

ROUNDS_TO_NODES = 5
"""Publications through each store; the first two, one for each place in memory, are not counted."""


@dataclass(frozen=True, kw_only=True)
class Reader:
    """The work of a process that fetches what it is told of, as a generator does, and says how long it took."""

    stores: dict[str, WeightStore]

    def __call__(self, connection: Connection) -> None:
        """Serve until the connection closes."""
        torch.set_num_threads(1)
        while True:
            name, publication = connection.recv()
            start, processor = time.perf_counter(), time.process_time()
            weights = self.stores[name].fetch(publication, publication)
            took = time.perf_counter() - start, time.process_time() - processor
            connection.send((*took, sum_of(weights)))


def to_other_nodes(weights: Weights, nodes: int) -> dict[str, object]:
    """Seconds to publish weights, to bring them to all nodes but the first, and to fetch them there, by store.

    `_cpu_s` are processor seconds of all processes that take part; on a busy machine they say more than `_s`.
    """
    expected = sum_of(weights)
    readers = range(1, nodes)
    seconds: dict[str, list[dict[str, float]]] = {"folder": [], "memory": []}
    with tempfile.TemporaryDirectory() as folder, coordinator_with_agents(Path(folder), nodes) as (coordinator, agents):
        stores: dict[str, WeightStore] = {
            "folder": FolderStore(Path(folder) / "folder", weights),
            "memory": BroadcastStore(weights, coordinator, Path(folder) / "weights", ranks=[0], readers=readers),
        }
        work = pickle.dumps(Reader(stores=stores))
        units = [PlacedUnit(role="generator", index=node - 1, node=node, devices=()) for node in readers]
        lines = [coordinator.start(unit, work).connect() for unit in units]
        for number in range(1, ROUNDS_TO_NODES + 1):
            for name, store in stores.items():
                start, at_start = time.perf_counter(), processor_seconds_of(agents)
                store.publish(number, number, weights)
                published, at_published = time.perf_counter(), processor_seconds_of(agents)
                store.broadcast(number, number)
                for node in readers:
                    there = threading.Event()
                    store.when_at(node, there.set)
                    there.wait()
                carried, at_carried = time.perf_counter(), processor_seconds_of(agents)
                for line in lines:
                    line.send((name, number))
                fetched = [line.recv() for line in lines]
                assert {total for _, _, total in fetched} == {expected}, (name, fetched)
                seconds[name].append(
                    {
                        "publish_s": published - start,
                        "carry_s": carried - published,
                        "fetch_s": max(wall for wall, _, _ in fetched),
                        "publish_cpu_s": at_published - at_start,
                        "carry_cpu_s": at_carried - at_published,
                        "fetch_cpu_s": sum(processor for _, processor, _ in fetched),
                    }
                )
                print(nodes, name, seconds[name][-1], flush=True)
        for store in stores.values():
            store.close()
    medians = {
        name: {part: statistics.median(each[part] for each in rounds[2:]) for part in rounds[0]}
        for name, rounds in seconds.items()
    }
    found: dict[str, object] = {
        "bytes": sum(tensor.numel() * tensor.element_size() for tensor in weights.values()),
        **medians,
    }
    for unit in ("s", "cpu_s"):
        by_folder, by_memory = (
            sum(each[f"{part}_{unit}"] for part in ("publish", "carry", "fetch")) for each in medians.values()
        )
        found[f"carry_share_of_folder_{unit}"] = medians["memory"][f"carry_{unit}"] / by_folder
        found[f"whole_share_of_folder_{unit}"] = by_memory / by_folder
    return found


@contextmanager
def coordinator_with_agents(run: Path, nodes: int) -> Iterator[tuple[Coordinator, list[int]]]:
    """A coordinator on this machine, and the process ids of the agents of the other nodes."""
    place = {"nodes": nodes, "allocation": "1.0", "hosts": ("127.0.0.1",)}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    agents: list[subprocess.Popen[bytes]] = []
    with closing(Coordinator(run, NodeOfRun(node=0, name="node 0", **place), listen="127.0.0.1")) as coordinator:
        for node in range(1, nodes):
            orders = json.dumps({"run": str(run), "node": node, "name": f"node {node}", **place})
            agents.append(subprocess.Popen([sys.executable, "-m", "scalerl.processes.agent", orders], env=environment))
        coordinator.await_agents()
        yield coordinator, [agent.pid for agent in agents]
    for agent in agents:
        agent.wait()


def sum_of(weights: Weights) -> float:
    """Sum of all numbers, which shows that the same ones have come."""
    return float(sum(weights[name].double().sum() for name in sorted(weights)))


def processor_seconds_of(agents: list[int]) -> float:
    """Processor time of this process and of the agents so far."""
    fields = [Path(f"/proc/{agent}/stat").read_text().rpartition(")")[2].split() for agent in agents]
    ticks = sum(int(each[11]) + int(each[12]) for each in fields)
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")
