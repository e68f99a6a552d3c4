"""Keeps a run's status.json current: its state, its progress, and a heartbeat."""

import os
import platform as machine
import socket
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

from scalerl.credentials import without_secrets
from scalerl.durable import error_text
from scalerl.quantities import counted
from scalerl.run.run_folder import RunFolder
from scalerl.run.status import RunStatus

HEARTBEAT_EVERY_S = 1.0
"""Wall-clock seconds between two writes of status.json."""

MOST_SPENT = 512
"""Maximum number of steps kept for the pace; beyond it, every second step is dropped."""


class StatusFile:
    """The status of one attempt, on top of the progress of earlier attempts."""

    def __init__(self, folder: RunFolder, budget_gpu_hours: float, code_version: str) -> None:
        before = folder.read_status()
        self.damage = "" if before.has_started else before.message
        """The damage found in the file, which is then rewritten as if the run had not started."""
        versions = before.code_versions
        self.earlier_versions = tuple(version for version in versions if version != code_version)
        """Other code versions that trained the run."""
        self._folder = folder
        self._status = replace(
            before,
            attempt=before.attempt + 1,
            budget_gpu_hours=budget_gpu_hours,
            pid=os.getpid(),
            host=socket.gethostname(),
            code_versions=versions if code_version in versions else (*versions, code_version),
            processor=processor(),
            threads=None,
            units=(),
            pace_s=None,
        )
        self._spent: list[tuple[float, float]] = []
        self._written = 0.0
        self._num_failed, self._failure = 0, ""
        """Number of failed writes of this attempt, and the reason for the last."""
        self.write("running")

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._status.attempt

    def resume(self, **progress: Any) -> None:
        """Take over the progress recorded in the checkpoint and the log, which a damaged or deleted status file has
        lost."""
        self._status = replace(self._status, **progress)

    def beat(self, *, every: float = HEARTBEAT_EVERY_S, message: str = "", **progress: Any) -> None:
        """Update fields of the status; writes at most once in `every` seconds."""
        self._status = replace(self._status, **progress)
        if "wall_s" in progress:
            self._status = replace(self._status, pace_s=self._pace())
        if time.time() - self._written >= every:
            self.write("running", message)

    def _pace(self) -> float | None:
        """Seconds for a GPU-hour over the later half of the compute, which leaves out starting and compiling."""
        now = self._status
        if not self._spent or now.compute_gpu_hours > self._spent[-1][0]:
            self._spent.append((now.compute_gpu_hours, now.wall_s))
        if len(self._spent) > MOST_SPENT:
            del self._spent[1::2]
        (first, _), (compute, wall_s) = self._spent[0], self._spent[-1]
        from_, began_s = next(
            one for one in reversed(self._spent) if one[0] <= (first + compute) / 2 or one[0] == first
        )
        return (wall_s - began_s) / (compute - from_) if compute > from_ else None

    def write(self, state: str, message: str = "") -> None:
        """Write the state and all known fields.

        A failed write does not end the run: the next heartbeat tries again, and the status at the end of the attempt is
        tried repeatedly.
        """
        self._written = time.time()
        self._status = replace(self._status, state=state, message=without_secrets(message), heartbeat=self._written)
        try:
            self._folder.write_status(self._told(), is_last=state != "running")
        except OSError as error:
            self._num_failed += 1
            if self._num_failed == 1:
                with suppress(OSError):
                    print(f"warning: {error_text(error)}; the run continues", flush=True)
            self._failure = error.strerror or str(error)

    def _told(self) -> RunStatus:
        """The status, with a warning if earlier ones could not be written."""
        if not self._num_failed:
            return self._status
        times = counted(self._num_failed, "time")
        said = f"status.json could not be written {times} ({self._failure}); the run continued"
        return replace(self._status, warnings=(*self._status.warnings, said))


def processor() -> str:
    """Name of the processor; bit-exact results hold for one kind of processor only."""
    with suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return machine.processor() or machine.machine()
