"""Whether the process that trains a run is alive: by its lock on this machine, by its heartbeat on another."""

import fcntl
import socket
import time
from pathlib import Path

from scalerl.run.run_folder import RunFolder
from scalerl.run.status import RunStatus

HEARTBEAT_LIMIT_S = 120.0
"""A run on another machine whose heartbeat is older than this is stale."""


def is_here(status: RunStatus) -> bool:
    """True if the run's process is, or was, on this machine."""
    return status.host == socket.gethostname()


def alive(folder: RunFolder, status: RunStatus) -> bool:
    """True if the process that wrote a `running` status is alive: by its lock here, by its heartbeat elsewhere."""
    if not is_here(status):
        return time.time() - status.heartbeat < HEARTBEAT_LIMIT_S
    return is_locked(folder.lock)


def is_locked(path: Path) -> bool:
    """True if a living process holds this `filelock` file. The file may be another user's, so it is only read."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # fails if the lock is held, which is exclusive
    except (FileNotFoundError, NotADirectoryError):
        return False
    except BlockingIOError:
        return True
    return False
