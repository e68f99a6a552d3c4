"""What a unit of a run was last known to do; nothing here imports torch, so that the platform reads it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class UnitState:
    """`UnitState(unit="generator 3", node="n2", state="at work", doing="decode", deaths=1)`."""

    unit: str
    node: str
    """What people call it."""
    state: str
    """`starting`, `catching up` (it takes the newest weights), `at work`, or `gone` for good."""
    doing: str
    """An activity (`scalerl.cluster.device_seconds`) of one at work, or `paused`; empty for others."""
    deaths: int
    """Of processes in this place, in this attempt."""
