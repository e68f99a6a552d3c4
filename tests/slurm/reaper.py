"""Ends every process of a test cluster as soon as the process that started the cluster is gone, however that ended.

    python reaper.py <folder of the cluster>

The other end of its standard input is open in the process that started the cluster, and nowhere else. When that process
closes it, or is killed, the reaper reads the end of the file. A process belongs to a cluster when its SLURM_CONF does:
the daemons, the jobs, and what jobs left behind.
"""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

LIMIT_S = 30.0
ALL_GONE_FOR_S = 0.3
"""A daemon may start one more process while the others are being killed."""


def main() -> None:
    """Wait for the end of standard input, then kill until no process of the cluster has been seen for a moment."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    folder = Path(sys.argv[1])
    while sys.stdin.buffer.read(1):
        pass
    deadline = time.monotonic() + LIMIT_S
    last_seen = time.monotonic()
    while time.monotonic() < min(deadline, last_seen + ALL_GONE_FOR_S):
        for process in processes_of(folder):
            last_seen = time.monotonic()
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)


def processes_of(folder: Path) -> list[int]:
    """The processes whose environment has the cluster's SLURM_CONF; the caller and zombies are not among them."""
    mine, found = f"SLURM_CONF={folder / 'slurm.conf'}".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(process.name) != os.getpid() and mine in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


if __name__ == "__main__":
    main()
