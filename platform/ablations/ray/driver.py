"""Ray's driver, in a process separate from the sweep's command: starts attempts, asks them to stop, and reports.

    python -m ablations.ray.driver

Lines of JSON come on stdin and leave on stdout; an attempt is named by the folder of its order:

    {"start": "<folder>"}    {"stop": "<folder>"}    {"examine": "<folder>", "node": "<id>"}
    {"nodes": [{"id": ..., "name": ..., "resources": {"CPU": 16.0, ...}}], "address": "10.0.0.1:6379"}    first
    {"problem": "..."}                                                  first: no cluster to connect to
    {"ended": "<folder>", "why": "its node has died", "is_lost": true}

When stdin ends, the command is gone: every run is asked to save its checkpoint, and the program ends after the last.
When the program ends, Ray ends its workers, and with them whatever still trains.
"""

import json
import os
import select
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy, PlacementGroupSchedulingStrategy

from ablations.ray.driver_process import ADDRESS
from ablations.ray.order import ORDER_FILE, read_order
from scalerl.plain_json import parsed_json

RESOURCE_OPTIONS = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
"""Ray's options for resources that have one, and the names of those resources."""
LOOK_AT_CLUSTER_EVERY_S = 0.2
KNOCK_LIMIT_S = 10.0
FOLLOW_LIMIT_S = 60.0
"""Seconds that agents of other nodes get to end after the first node has."""
LAST_LIMIT_S = 300.0
"""Seconds that runs get to save their checkpoints when the command is gone."""


class Node:
    """One node of an attempt. The class travels by value, since it is defined in a program, and a worker of Ray finds
    our packages only in the snapshot."""

    def __init__(self, snapshot: str) -> None:
        sys.path.insert(0, snapshot)

    def address(self) -> str:
        """An address at which the other nodes reach this one."""
        return ray.util.get_node_ip_address()

    def work(self, attempt: str, allocation: str, node: int, host: str) -> str:
        """Do this node's part; returns why it could not be done, if so."""
        if problem := self._unseen(f"{attempt}/{ORDER_FILE}", "allocation", allocation):
            return problem
        from ablations.ray.node import run_part

        return run_part(Path(attempt), node, host)

    def examine(self, folder: str, word: str, snapshot: str) -> str:
        """Run the doctor's probe; returns why it could not be run, if so."""
        if problem := self._unseen(f"{folder}/question.json", "word", word):
            return problem
        from ablations.ray.node import run_probe

        return run_probe(Path(folder), Path(snapshot))

    def _unseen(self, path: str, key: str, word: str) -> str:
        """Why this node does not see a file in which the command has just written this word under this key."""
        try:
            seen = parsed_json(Path(path).read_bytes())[key]
        except (OSError, ValueError, KeyError) as error:
            seen = f"{type(error).__name__}: {error}"
        if seen == word:
            return ""
        return (
            f"node {ray.util.get_node_ip_address()} of the Ray cluster does not see {path} ({seen}); the home folder "
            "must be on a file system that all nodes share, under the same path: choose one with --home"
        )

    def ask_to_stop(self, run: str) -> None:
        """Ask the run's process on this node to save a checkpoint and end."""
        from ablations.home.state import ask_to_stop
        from scalerl.run.run_folder import RunFolder

        ask_to_stop(RunFolder(Path(run)))


@dataclass(kw_only=True)
class RayAttempt:
    """The actors of one attempt, one per node, and the outcome of their work."""

    folder: str
    run: Path
    """The run's folder, or that of an examination."""
    nodes: list[Any]
    first_address: Any
    ends: list[Any]
    group: Any = None
    """Placement group; one node needs none."""
    first_ended: float | None = None
    """When the first node was seen to have ended."""

    def stop(self) -> bool:
        """Ask the run to stop; returns True if it was still waiting for a place and has been dropped."""
        if not ray.wait([self.first_address], timeout=0)[0]:
            return True
        self.nodes[0].ask_to_stop.remote(str(self.run))
        return False

    def is_over(self) -> bool:
        """True if all nodes have ended, or the first has and the others do not follow."""
        over, going = ray.wait(self.ends, num_returns=len(self.ends), timeout=0)
        if self.ends[0] not in over:
            return False
        self.first_ended = self.first_ended or time.monotonic()
        return not going or time.monotonic() - self.first_ended > FOLLOW_LIMIT_S

    def close(self) -> None:
        """End the workers and release what they reserved."""
        for node in self.nodes:
            ray.kill(node)
        if self.group is not None:
            remove_placement_group(self.group)

    def report(self) -> dict[str, Any]:
        """How the attempt ended, according to its first node, unless a node was lost."""
        over = ray.wait(self.ends, num_returns=len(self.ends), timeout=0)[0]
        found = [how_it_ended(end) for end in self.ends if end in over]
        why, is_lost = next((one for one in found if one[1]), found[0])
        return {"ended": self.folder, "why": why, "is_lost": is_lost}


def how_it_ended(end: Any) -> tuple[str, bool]:
    """Why a node's part ended or could not begin, and whether the node was lost."""
    try:
        return ray.get(end), False
    except RayTaskError as error:  # a fault of ours, with a traceback
        print(error, file=sys.stderr, flush=True)
        return f"{type(error.cause).__name__}: {error.cause}", False
    except RayError as error:
        print(error, file=sys.stderr, flush=True)
        return f"its node, or the Ray worker on it, is gone ({type(error).__name__})", True


def actor(resources: dict[str, float], there: Any) -> Any:
    """The actor class with these resources (Ray's names for them) and this placement."""
    others = dict(resources)
    own = {option: others.pop(name, 0.0) for option, name in RESOURCE_OPTIONS.items()}
    return ray.remote(Node).options(**own, max_concurrency=3, resources=others, scheduling_strategy=there)


def place_attempt(folder: str) -> RayAttempt:
    """Ask Ray for the nodes of an attempt and submit their work, which waits until Ray has placed them."""
    order = read_order(Path(folder))
    share, group = order.share, None
    if share.nodes > 1:
        group = placement_group([share.resources] * share.nodes, strategy="STRICT_SPREAD")
    nodes = []
    for index in range(share.nodes):
        there = None if group is None else PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index)
        nodes.append(actor(share.resources, there).remote(str(order.snapshot)))
    address = nodes[0].address.remote()
    ends = [node.work.remote(folder, order.allocation, index, address) for index, node in enumerate(nodes)]
    return RayAttempt(folder=folder, run=order.run, nodes=nodes, first_address=address, ends=ends, group=group)


def place_probe(folder: str, node_id: str) -> RayAttempt:
    """Have the doctor's probe run on one node, beside whatever runs there."""
    question = parsed_json(Path(folder, "question.json").read_bytes())
    there = NodeAffinitySchedulingStrategy(node_id, soft=False)
    node = actor({"CPU": 0.0}, there).remote(question["snapshot"])
    ends = [node.examine.remote(folder, question["word"], question["snapshot"])]
    return RayAttempt(folder=folder, run=Path(folder), nodes=[node], first_address=node.address.remote(), ends=ends)


@dataclass(kw_only=True)
class Driver:
    """The attempts of one command."""

    reports: int
    """The file descriptor for reports."""
    attempts: dict[str, RayAttempt] = field(default_factory=dict)

    def say(self, report: dict[str, Any]) -> None:
        """Report to the command, if it is still running."""
        with suppress(BrokenPipeError):
            os.write(self.reports, json.dumps(report).encode() + b"\n")

    def obey(self, order: dict[str, str]) -> None:
        """Start or stop an attempt; one that has ended meanwhile cannot be stopped."""
        match order:
            case {"start": folder}:
                self.attempts[folder] = place_attempt(folder)
            case {"examine": folder, "node": node_id}:
                self.attempts[folder] = place_probe(folder, node_id)
            case {"stop": folder} if folder in self.attempts and self.attempts[folder].stop():
                self.attempts.pop(folder).close()
                self.say({"ended": folder, "why": "stopped before Ray had a place for it", "is_lost": False})

    def look(self) -> None:
        """Report the attempts that are over."""
        for folder, attempt in list(self.attempts.items()):
            if attempt.is_over():
                del self.attempts[folder]
                report = attempt.report()
                attempt.close()
                self.say(report)

    def serve(self) -> None:
        """Obey orders until the command is gone."""
        rest = b""
        while True:
            if select.select([0], [], [], LOOK_AT_CLUSTER_EVERY_S)[0]:
                if not (came := os.read(0, 65536)):
                    return
                *lines, rest = (rest + came).split(b"\n")
                for line in lines:
                    self.obey(parsed_json(line))
            self.look()

    def end(self) -> None:
        """Have every run save its checkpoint, and wait for it."""
        limit = time.monotonic() + LAST_LIMIT_S
        while self.attempts and time.monotonic() < limit:
            for folder in list(self.attempts):
                self.obey({"stop": folder})
            time.sleep(LOOK_AT_CLUSTER_EVERY_S)
            self.look()


def knock(address: str) -> None:
    """OSError if nobody listens at an address `host:port`, for which Ray would wait minutes.

    ValueError for an address of Ray Client, whose driver would be another process on the head node.
    """
    if address.startswith("ray://"):
        raise ValueError("an address of Ray Client; start the command on a node of the cluster, or give host:port")
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=KNOCK_LIMIT_S).close()


def main() -> None:
    driver = Driver(reports=os.dup(1))
    os.dup2(2, 1)  # whatever Ray prints goes to the log
    try:
        knock(os.environ.get(ADDRESS, ""))
        ray.init(address="auto", log_to_driver=False, configure_logging=False)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        driver.say({"problem": " ".join(str(error).split())})
        return
    nodes = [
        {"id": node["NodeID"], "name": node["NodeManagerHostname"], "resources": node["Resources"]}
        for node in ray.nodes()
        if node["Alive"]
    ]
    driver.say({"nodes": nodes, "address": ray.get_runtime_context().gcs_address})
    driver.serve()
    driver.end()
    ray.shutdown()


if __name__ == "__main__":
    main()
