"""This machine as a site: runs are processes that a server forks (`ablations.pools.fork_server`), with GPUs dealt out.

The server has the environment, the folder and the code with which it was started. If one of them has changed when a run
starts, a new server takes its place. Runs outlive their server, and both outlive a sweep that is killed.
"""

import json
import os
import subprocess
import sys
import sysconfig
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from ablations.home.heartbeat import is_locked
from ablations.home.home import Home
from ablations.home.state import ask_to_stop
from ablations.pools.code_snapshot import PACKAGES
from ablations.pools.fork_server import LOADS_FIRST
from ablations.pools.job import THREAD_VARIABLES
from scalerl.process_variables import VISIBLE_GPUS

SERVER_END_LIMIT_S = 30.0
"""Seconds for a server to end, which may still be loading."""
GPU_DEVICES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
"""Devices of which a machine with a GPU for PyTorch has one: Nvidia's, Windows' and AMD's."""


@dataclass(kw_only=True)
class LocalJob:
    """A run's process, and the GPUs assigned to it."""

    output: Path
    """What the process prints before its log is open; locked while the process lives."""
    server: subprocess.Popen[bytes]
    log: Path
    """The server's output."""
    gpus: tuple[str, ...]
    why: str = ""
    is_lost: bool = False
    """True if the server ended before it started the process."""
    _has_started: bool = False

    def done(self) -> bool:
        server_ended = self.server.poll() is not None  # asked first: it may start the process in between
        if self.output.exists():
            self._has_started = True
            if is_locked(self.output):
                return False
            if self.output.stat().st_size:
                self.why = f"the process was killed; it printed something before its log was open, see {self.output}"
            return True
        if server_ended and not self._has_started:
            self.is_lost, self.why = True, f"the process that starts runs has ended; its output is in {self.log}"
        return server_ended or self._has_started  # a user may delete the file


@dataclass(kw_only=True)
class ThisMachine:
    """Starts runs as processes on this machine."""

    home: Home
    folder: Path
    """The folder for the output of the server, and for one file per started run."""
    threads: int
    """CPU threads per run."""
    gpus: tuple[str, ...] = ()
    """GPUs of this machine; runs share them if there are more runs than GPUs."""
    gpus_of_run: int = 1
    """GPUs that a run can use."""
    needs_torch: bool = True
    """True if runs are of our own trainer, so that the server loads torch for them."""
    _jobs: list[LocalJob] = field(default_factory=list)
    _server: subprocess.Popen[bytes] | None = None
    _end: Callable[[], object] | None = None
    """Ends the server, at the latest with the sweep."""
    _served: Any = None
    """Environment, folder and code of the server."""

    @property
    def name(self) -> str:
        """Empty: this machine needs no mention."""
        return ""

    @property
    def log(self) -> Path:
        """The output of the server."""
        return self.folder / "server.log"

    def start(self, run_id: str, budget_gpu_hours: float) -> LocalJob:
        self._jobs = [job for job in self._jobs if not job.done()]
        gpus = dealt(self.gpus, self.gpus_of_run, [gpu for job in self._jobs for gpu in job.gpus])
        self.folder.mkdir(parents=True, exist_ok=True)
        output = self.folder.absolute() / f"{time.strftime('%Y%m%d-%H%M%S')}-{run_id}-{uuid.uuid4().hex[:6]}.out"
        order = {
            "run": str(self.home.run(run_id).path.absolute()),
            "budget_gpu_hours": budget_gpu_hours,
            "warm_starts": str(self.home.warm_starts.absolute()),
            "visible": ",".join(gpus) if gpus else None,
            "output": str(output),
        }
        server = self._server_of_now()
        assert server.stdin is not None
        with suppress(BrokenPipeError):  # it has just ended, which the job will say
            server.stdin.write(json.dumps(order).encode() + b"\n")
            server.stdin.flush()
        self._jobs.append(LocalJob(output=output, server=server, log=self.log, gpus=gpus))
        return self._jobs[-1]

    def ask_to_stop(self, run_id: str) -> None:
        """Send SIGTERM to the process that trains the run, even if a killed sweep left it behind."""
        ask_to_stop(self.home.run(run_id))

    @property
    def may_load(self) -> bool:
        """True if the server can load torch for the runs. With several threads, BLAS starts them as it is loaded."""
        return self.needs_torch and self.threads == 1 and not self.gpus and can_fork_torch()

    def _server_of_now(self) -> subprocess.Popen[bytes]:
        """A server with the environment, the folder and the code of now."""
        environment = os.environ | {variable: str(self.threads) for variable in THREAD_VARIABLES}
        now = environment, os.getcwd(), code_state()
        if self._server is None or self._server.poll() is not None or self._served != now:
            if self._end is not None:
                self._end()
            loads = [LOADS_FIRST] if self.may_load else []
            with self.log.open("ab") as log:
                self._server = subprocess.Popen(
                    [sys.executable, "-P", "-u", "-m", "ablations.pools.fork_server", *loads],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    start_new_session=True,  # a terminal sends Ctrl-C to its own session
                )
            self._served, self._end = now, weakref.finalize(self, end_server, self._server)
        return self._server


def end_server(server: subprocess.Popen[bytes]) -> None:
    """Let a server start what it has been ordered to, and end."""
    assert server.stdin is not None
    with suppress(BrokenPipeError):
        server.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        server.wait(SERVER_END_LIMIT_S)
    server.kill()
    server.wait()


def can_fork_torch() -> bool:
    """True if a process may load torch and then fork: not beside the driver of a GPU, nor where system libraries start
    threads, as on macOS."""
    return sys.platform == "linux" and not any(map(os.path.exists, GPU_DEVICES))


def code_state() -> dict[Path, tuple[int, int]]:
    """Size and time of our sources, and of the folder of installed packages, which pip changes."""
    found = {}
    for path in (
        Path(sysconfig.get_path("purelib")),
        *(one for root in PACKAGES.values() for one in root.rglob("*.py")),
    ):
        with suppress(FileNotFoundError):  # an editor's own file
            stat = path.stat()
            found[path] = stat.st_size, stat.st_mtime_ns
    return found


def most_runs_here(threads: int, gpus: Sequence[str], gpus_of_run: int) -> int:
    """Number of runs with this many threads and GPUs each that this machine can train at once; at least one."""
    most = (os.cpu_count() or 1) // threads
    return max(1, min(most, len(gpus) // gpus_of_run) if gpus else most)


def gpus_here() -> tuple[str, ...]:
    """Names of the GPUs that this process may use: those in CUDA_VISIBLE_DEVICES before the first that names none, such
    as -1, else the indices that `nvidia-smi` lists; none if the command is missing."""
    named = os.environ.get(VISIBLE_GPUS)
    if named is not None:
        return tuple(takewhile(lambda name: name and not name.startswith("-"), named.split(",")))
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(map(str, range(sum(line.startswith("GPU ") for line in done.stdout.splitlines()))))


def dealt(gpus: tuple[str, ...], number: int, in_use: Iterable[str]) -> tuple[str, ...]:
    """At most `number` GPUs for one more run, those with the fewest runs first.

    >>> dealt(("0", "1", "2"), 2, in_use=["0"])
    ("1", "2")
    """
    runs = Counter(in_use)
    return tuple(sorted(sorted(gpus, key=lambda gpu: runs[gpu])[:number], key=gpus.index))
