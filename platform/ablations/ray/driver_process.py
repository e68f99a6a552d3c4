"""The command's side of Ray's driver, which runs in a separate process (`ablations.ray.driver`): orders and reports.

If the driver is gone, because it was killed or lost the cluster, all its runs count as lost.
"""

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ablations.errors import AblationsError

RAY_CONNECT_LIMIT_S = 120.0
"""Seconds to connect to a cluster: loading Ray comes first."""
DRIVER_END_LIMIT_S = 30.0
ADDRESS = "RAY_ADDRESS"
"""Ray's variable for the address of a cluster."""


class RayError(AblationsError):
    """Ray is not installed, no cluster was found, or the cluster cannot be used."""


@dataclass(kw_only=True)
class RayJob:
    """One attempt at a run, as the driver reports it."""

    attempt: Path
    why: str = ""
    """Why the attempt ended, if something else ended it."""
    is_lost: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def done(self) -> bool:
        return self.ended.is_set()


@dataclass(frozen=True, kw_only=True)
class RayNode:
    """A node of a cluster: `RayNode(id="6ffc22c7...", name="n1", resources={"CPU": 16.0, "memory": 6.4e10})`."""

    id: str
    name: str
    resources: dict[str, float]
    """The resources that Ray offers on this node, under Ray's names."""


class DriverProcess:
    """A driver that is connected to a cluster: `DriverProcess(log).nodes`."""

    def __init__(self, log: Path) -> None:
        """Start a driver whose output goes to `log`; raises RayError if there is no Ray or no cluster."""
        if find_spec("ray") is None:
            raise RayError("Ray is not installed here; install it with `pip install 'ablations[ray]'`")
        self.log, self._lock = log, threading.Lock()
        self._jobs: dict[str, RayJob] = {}
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "ablations.ray.driver"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,  # a terminal sends Ctrl-C to its own session: the command decides what follows
            )
        self._connected, self._said = threading.Event(), dict[str, Any]()
        threading.Thread(target=self._listen, daemon=True).start()
        self._connected.wait(RAY_CONNECT_LIMIT_S)
        if "nodes" not in self._said:
            self._process.kill()
            problem = self._said.get("problem", f"no answer; the output of Ray's driver is in {log}")
            named = f"{ADDRESS} is {os.environ[ADDRESS]}" if ADDRESS in os.environ else f"{ADDRESS} is not set"
            raise RayError(
                f"no Ray cluster to train on ({named}): {problem}. On a node of the cluster no address is needed; to "
                "start one, see docs/ray.md"
            )

    @property
    def nodes(self) -> list[RayNode]:
        """The nodes of the cluster when the driver connected."""
        return [RayNode(**node) for node in self._said["nodes"]]

    @property
    def address(self) -> str:
        return self._said["address"]

    @property
    def is_there(self) -> bool:
        """True while the process lives."""
        return self._process.poll() is None

    def start(self, attempt: Path) -> RayJob:
        """Start the attempt whose order is in this folder."""
        return self._begin(attempt, {"start": str(attempt)})

    def examine(self, folder: Path, node: RayNode) -> RayJob:
        """Start the doctor's probe, whose question is in this folder, on one node."""
        return self._begin(folder, {"examine": str(folder), "node": node.id})

    def stop(self, job: RayJob) -> None:
        self._order({"stop": str(job.attempt)})

    def close(self) -> None:
        """Let the driver end."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(DRIVER_END_LIMIT_S)

    def _begin(self, folder: Path, order: dict[str, str]) -> RayJob:
        job = RayJob(attempt=folder)
        with self._lock:
            self._jobs[str(folder)] = job
        self._order(order)
        if not self.is_there:
            self._lose_all()
        return job

    def _order(self, order: dict[str, str]) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # the driver is gone, which the reader notices
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            match json.loads(line):
                case {"ended": attempt, "why": why, "is_lost": is_lost}:
                    with self._lock:
                        job = self._jobs.pop(attempt)
                    job.why, job.is_lost = why, is_lost
                    job.ended.set()
                case first:
                    self._said = first
                    self._connected.set()
        self._process.wait()
        self._connected.set()
        self._lose_all()

    def _lose_all(self) -> None:
        with self._lock:
            jobs, self._jobs = list(self._jobs.values()), {}
        for job in jobs:
            job.why, job.is_lost = f"Ray's driver has ended; its output is in {self.log}", True
            job.ended.set()
