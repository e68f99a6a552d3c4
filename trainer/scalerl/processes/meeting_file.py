"""Where the agents of a run's nodes find its coordinator: a file of the run folder.

    meeting.json
    {"allocation": "17.0", "attempt": 1, "hosts": ["10.0.0.11", "n1"], "port": 41873, "key": "9f0c..."}

Only its owner can read it, for the key in it opens every connection of the attempt. `allocation` names the attempt of
a job, so that agents never meet the coordinator of an earlier one. When the attempt is over the file says so, and
agents that come late go home: {"allocation": "17.0", "ended": true}.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalerl.errors import Internal

MEETING_FILE = "meeting.json"


@dataclass(frozen=True, kw_only=True)
class MeetingPoint:
    """Where a coordinator listens."""

    hosts: tuple[str, ...]
    """Names or addresses, the likeliest first."""
    port: int
    key: bytes
    attempt: int
    """Of the run, which names its logs."""


class MeetingIsOver(Internal):
    """The attempt that an agent came for has ended."""


def write_meeting(folder: Path, allocation: str, point: MeetingPoint) -> None:
    """Say where the coordinator of this attempt listens."""
    where = {"hosts": point.hosts, "port": point.port, "key": point.key.hex()}
    _replace(folder / MEETING_FILE, {"allocation": allocation, "attempt": point.attempt, **where})


def write_ended(folder: Path, allocation: str) -> None:
    """Say that this attempt is over."""
    _replace(folder / MEETING_FILE, {"allocation": allocation, "ended": True})


def read_meeting(folder: Path, allocation: str) -> MeetingPoint | None:
    """Where to go; None while this attempt's coordinator has not written it. MeetingIsOver where it has ended."""
    try:
        content = json.loads((folder / MEETING_FILE).read_bytes())
        if content["allocation"] != allocation:
            return None
        if content.get("ended"):
            raise MeetingIsOver(f"attempt {allocation} of {folder} is over")
        hosts = tuple(content["hosts"])
        port, key, attempt = int(content["port"]), bytes.fromhex(content["key"]), int(content["attempt"])
        return MeetingPoint(hosts=hosts, port=port, key=key, attempt=attempt)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None  # an earlier attempt's, or what a power cut left of it: this one's coordinator writes another


def _replace(path: Path, content: dict[str, Any]) -> None:
    """In one step; nobody else can ever read it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(json.dumps(content).encode())
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
