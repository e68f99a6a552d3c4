"""A Ray cluster of several nodes on this machine, whose nodes a test can kill."""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from reaper import marked, start_reaper

VARIABLE = "ABLATIONS_RAY_TEST"
"""In the environment of everything that the cluster has started."""
LIMIT_S = 120.0


def is_installed() -> bool:
    """Whether Ray is there: a folder of another name would do for `find_spec("ray")`."""
    return find_spec("ray") is not None and find_spec("ray._version") is not None


class RayCluster:
    """A context: `with RayCluster(cpus=1) as cluster: cluster.add_node(1)`."""

    def __init__(self, *, cpus: int) -> None:
        self._cpus = cpus

    def __enter__(self) -> "RayCluster":
        # Ray's sockets stand there, and their paths have at most 107 characters.
        self._folder = Path(tempfile.mkdtemp(prefix="ray-"))
        self.mark = f"{VARIABLE}={self._folder}"
        self._environment = os.environ | {
            VARIABLE: str(self._folder),
            "RAY_TMPDIR": str(self._folder),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",
            "RAY_gcs_rpc_server_reconnect_timeout_s": "10",  # instead of a minute, when the head node is gone
            # A killed node is noticed within two seconds instead of fifteen.
            "RAY_health_check_initial_delay_ms": "0",
            "RAY_health_check_period_ms": "400",
        }
        self._reaper = start_reaper(self.mark)
        self._log = (self._folder / "nodes.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("nodes.py")), str(self._folder), str(self._cpus)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, env=self._environment,
        )  # fmt: skip
        self.address = self._answer()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._reaper.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(LIMIT_S)
        finally:
            self._reaper.stdin.close()
            self._reaper.wait(LIMIT_S)
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            self._log.close()
            shutil.rmtree(self._folder)

    @property
    def environment(self) -> dict[str, str]:
        """For commands that are to find the cluster."""
        return self._environment | {"RAY_ADDRESS": self.address}

    def add_node(self, cpus: int) -> int:
        """Start a node; returns its number."""
        return int(self._order(f"add {cpus}"))

    def kill_node(self, number: int) -> None:
        """Kill a node's daemon as a power cut would."""
        assert self._order(f"kill {number}") == "killed"

    def ours(self) -> list[int]:
        """The processes of ours that run on the cluster or drive it."""
        return [process for process in marked(self.mark) if is_ours(process)]

    def _order(self, order: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        assert answer, (self._folder / "nodes.log").read_text()[-4000:]
        return answer


def command_line(process: int) -> str:
    """How a process was started; empty once it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def is_ours(process: int) -> bool:
    """Whether a process is not one of Ray's own."""
    return any(name in command_line(process) for name in ("ablations", "scalerl", "multiprocessing"))
