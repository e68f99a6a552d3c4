"""Keeps a run's status.json current: what it is doing, how far it is, and that it is alive."""

import os
import platform as machine
import socket
import time
from contextlib import suppress
from typing import Any

from scalerl.run.run_folder import RunFolder

HEARTBEAT_EVERY_S = 1.0
"""Wall-clock seconds between two writes of status.json."""


class StatusFile:
    """The status of one attempt, on top of what earlier attempts reached."""

    def __init__(self, folder: RunFolder, budget_gpu_hours: float, code_version: str) -> None:
        before = folder.read_status()
        versions = before.get("code_versions", [])
        self._folder = folder
        self._fields: dict[str, Any] = {
            "step": before.get("step", 0),
            "compute_gpu_hours": before.get("compute_gpu_hours", 0.0),
            "wall_s": before.get("wall_s", 0.0),
            "pass_rate": before.get("pass_rate"),
            "warnings": before.get("warnings", []),
            "attempt": before.get("attempt", 0) + 1,
            "budget_gpu_hours": budget_gpu_hours,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "code_versions": versions if code_version in versions else [*versions, code_version],
            "processor": processor(),
        }
        self._written = 0.0
        self.write("running")

    def beat(self, *, every: float = HEARTBEAT_EVERY_S, **progress: Any) -> None:
        """Note progress; written at most once in `every` seconds."""
        self._fields |= progress
        if time.time() - self._written >= every:
            self.write("running")

    def write(self, state: str, message: str = "") -> None:
        """Write the state and all that is known."""
        self._written = time.time()
        self._fields |= {"state": state, "message": message, "heartbeat": self._written}
        self._folder.write_status(self._fields)


def processor() -> str:
    """The processor's name, which bit-exact results hold for."""
    with suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return machine.processor() or machine.machine()
