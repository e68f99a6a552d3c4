"""Messages between the coordinator and the agent of a node, and the first message of a process started by the agent.

from an agent        Hello, Started, Exited, Took
to an agent          StartUnit, EndUnit, TakeShare, Leave
from a process       Called, which is answered with the work
from a keeper        Share, which is answered with its bytes
"""

from dataclasses import dataclass

from scalerl.weights.keeper import TakeShare, Took
from scalerl.weights.node_memory import Share


@dataclass(frozen=True, kw_only=True)
class Hello:
    """First message of an agent: `Hello(node=1, name="n2", devices=8, host="10.0.0.11", process_id=4711)`."""

    node: int
    """Number of the node, from 1; the coordinator is on node 0."""
    name: str
    """Name of the node, for people."""
    devices: int
    """Number of GPUs available to the agent; 0 if processes compute on the CPU."""
    host: str
    """Host under which the agent found the coordinator."""
    process_id: int
    address: str
    port: int
    """Address and port on which other keepers reach the agent's."""


@dataclass(frozen=True, kw_only=True)
class StartUnit:
    """Order to start a process: `StartUnit(ticket="generator 3 (1)", devices=(6, 7))`."""

    ticket: str
    """Unique name of the process, never used twice."""
    devices: tuple[int, ...]
    """GPUs of the node, from 0; the process sees no others."""


@dataclass(frozen=True, kw_only=True)
class EndUnit:
    """Order to kill a process and all that it has started."""

    ticket: str


@dataclass(frozen=True, kw_only=True)
class Leave:
    """Order to end all started processes and then the agent: the attempt is over."""


@dataclass(frozen=True, kw_only=True)
class Started:
    """Report that the process is running."""

    ticket: str
    process_id: int


@dataclass(frozen=True, kw_only=True)
class Exited:
    """Report that the process and all that it had started are gone."""

    ticket: str
    code: int
    """Exit code; negative for a signal."""


@dataclass(frozen=True, kw_only=True)
class Called:
    """First message of a process."""

    ticket: str


ToAgent = StartUnit | EndUnit | TakeShare | Leave
FromAgent = Started | Exited | Took
FirstWord = Hello | Called | Share
MOST_MESSAGE_BYTES = 1 << 16
"""Size limit of these messages; the work of a process has no such limit."""
