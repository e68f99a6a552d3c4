"""Temporary files and folders of exports and imports; if a process was killed, the next export or import removes its
own."""

import os
import re
import shutil
import socket
import uuid
from pathlib import Path

TEMPORARY = re.compile(
    r"\.ablations-(export|import)-(?P<host>.+)-(?P<pid>\d+)-[0-9a-f]{8}\.tmp"
    r"|\.[^/]+\.tar\.gz\.(?P<old>\d+)\.tmp|\.import-[a-z0-9_]{8}"  # names of earlier versions
)


def temporary_in(folder: Path, purpose: str) -> Path:
    """A new name in `folder` for an "export" or "import"; first, the leftovers of killed ones are removed."""
    remove_temporary(folder)
    return folder / f".ablations-{purpose}-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.tmp"


def remove_temporary(folder: Path) -> None:
    """Remove from `folder` the leftovers of this machine's exports and imports whose process is gone."""
    for path in folder.glob(".*"):
        found = TEMPORARY.fullmatch(path.name)
        if (
            found is None
            or found["host"] not in (None, socket.gethostname())
            or _is_alive(found["pid"] or found["old"])
        ):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _is_alive(pid: str | None) -> bool:
    try:
        return pid is not None and os.kill(int(pid), 0) is None
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
