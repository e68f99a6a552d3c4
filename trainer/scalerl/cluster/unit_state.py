"""Last known state of a unit of a run; imports no torch, so that the platform can read it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class UnitState:
    """State of one unit: `UnitState(unit="generator 3", node="n2", state="at work", doing="decode", deaths=1)`."""

    unit: str
    node: str
    """Name of the node for people."""
    state: str
    """`starting`, `catching up` (taking the newest weights), `at work`, or `gone` for good."""
    doing: str
    """Activity of a unit at work (`scalerl.cluster.device_seconds`), or `paused`; otherwise empty."""
    deaths: int = 0
    """Number of processes that died in this place during this attempt."""
