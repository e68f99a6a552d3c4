"""Ends every process that a test left as soon as the process that started them is gone, however that ended.

    python reaper.py SLURM_CONF=/tmp/.../slurm.conf

The other end of its standard input is open in the process that started it, and nowhere else. When that process closes
it, or is killed, the reaper reads the end of the file, and kills every process whose environment has this variable:
daemons, jobs, workers, and what they left behind.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

LIMIT_S = 30.0
ALL_GONE_FOR_S = 0.3
"""A daemon may start one more process while the others are being killed."""


def main() -> None:
    """Wait for the end of standard input, then kill until no such process has been seen for a moment."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while sys.stdin.buffer.read(1):
        pass
    deadline = time.monotonic() + LIMIT_S
    last_seen = time.monotonic()
    while time.monotonic() < min(deadline, last_seen + ALL_GONE_FOR_S):
        for process in marked(sys.argv[1]):
            last_seen = time.monotonic()
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.05)


def marked(variable: str) -> list[int]:
    """The processes whose environment has `NAME=value`; the caller and zombies are not among them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            environment = (process / "environ").read_bytes().split(b"\0")
            if variable.encode() in environment and int(process.name) != os.getpid():
                found.append(int(process.name))
    return found


def start_reaper(variable: str) -> subprocess.Popen[bytes]:
    """One for the processes with `NAME=value`; close its standard input when they are to end."""
    return subprocess.Popen([sys.executable, __file__, variable], stdin=subprocess.PIPE, start_new_session=True)


if __name__ == "__main__":
    main()
