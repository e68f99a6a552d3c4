"""What the coordinator and the agent of a node say to each other, and the first word of a process that it started.

from an agent        Hello, Started, Exited
to an agent          StartUnit, EndUnit, Leave
from a process       Called; it then gets its work
"""

import pickle
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Hello:
    """The first word of an agent: `Hello(node=1, name="n2", devices=8, host="10.0.0.11", process_id=4711)`."""

    node: int
    """From 1; the coordinator is on node 0."""
    name: str
    """For people."""
    devices: int
    """GPUs that it may give away; 0 where processes compute on the CPU."""
    host: str
    """Under which it found the coordinator."""
    process_id: int


@dataclass(frozen=True, kw_only=True)
class StartUnit:
    """Start a process: `StartUnit(ticket="generator 3 (1)", devices=(6, 7))`."""

    ticket: str
    """Names the process from here on; none is used twice."""
    devices: tuple[int, ...]
    """Of the node's, from 0; the process sees no others."""


@dataclass(frozen=True, kw_only=True)
class EndUnit:
    """Kill a process and all that it has started."""

    ticket: str


@dataclass(frozen=True, kw_only=True)
class Leave:
    """The attempt is over: end all that was started, then yourself."""


@dataclass(frozen=True, kw_only=True)
class Started:
    """The process is there."""

    ticket: str
    process_id: int


@dataclass(frozen=True, kw_only=True)
class Exited:
    """The process and all that it had started is gone."""

    ticket: str
    code: int
    """Negative for a signal."""


@dataclass(frozen=True, kw_only=True)
class Called:
    """The first word of a process."""

    ticket: str


ToAgent = StartUnit | EndUnit | Leave
FromAgent = Started | Exited
FirstWord = Hello | Called
MOST_MESSAGE_BYTES = 1 << 16
"""Of one of these messages; the work of a process has no such limit."""


def packed(message: ToAgent | FromAgent | FirstWord) -> bytes:
    """For `Connection.send_bytes`."""
    return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(content: bytes) -> Any:
    """The message."""
    return pickle.loads(content)
