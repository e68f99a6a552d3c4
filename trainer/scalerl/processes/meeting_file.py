"""The file in the run folder by which agents find the coordinator.

    meeting.json
    {"allocation": "17.0", "attempt": 1, "hosts": ["10.0.0.11", "n1"], "port": 41873, "key": "9f0c..."}

Only the owner can read the file, because its key opens every connection of the attempt. `allocation` names the attempt
of a job, so agents never connect to the coordinator of an earlier one. Once the attempt is over, the file turns late
agents away: {"allocation": "17.0", "ended": true}.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalerl.durable import write_atomically
from scalerl.errors import Internal

MEETING_FILE = "meeting.json"


@dataclass(frozen=True, kw_only=True)
class MeetingPoint:
    """The address on which a coordinator listens."""

    hosts: tuple[str, ...]
    """Names or addresses, the likeliest first."""
    port: int
    key: bytes
    attempt: int
    """Number of the run's attempt, which names its logs."""


class MeetingIsOver(Internal):
    """The attempt that an agent was to join has ended."""


def write_meeting(folder: Path, allocation: str, point: MeetingPoint) -> None:
    """Write the address of this attempt's coordinator."""
    where = {"hosts": point.hosts, "port": point.port, "key": point.key.hex()}
    _write(folder, {"allocation": allocation, "attempt": point.attempt, **where})


def write_ended(folder: Path, allocation: str) -> None:
    """Mark this attempt as over."""
    _write(folder, {"allocation": allocation, "ended": True})


def read_meeting(folder: Path, allocation: str) -> MeetingPoint | None:
    """The coordinator's address; None until this attempt's coordinator writes it; MeetingIsOver once it has ended."""
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
        return None  # from an earlier attempt or a power cut: this attempt's coordinator writes another


def _write(folder: Path, content: dict[str, Any]) -> None:
    write_atomically(folder / MEETING_FILE, json.dumps(content).encode(), mode=0o600)
