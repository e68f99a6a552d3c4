"""What the trainer's process knows of one generator process."""

from dataclasses import dataclass, field
from typing import Any, Literal

Stage = Literal["starting", "catching up", "at work", "gone"]
"""Has said nothing yet; takes the newest weights; may be given groups; is dead and not started again."""


@dataclass(kw_only=True)
class Member:
    """One of the fleet: `Member(stage="at work", version=12, told=12, seen=12, taken=12, groups={331: 16})`."""

    stage: Stage = "starting"
    version: int = 0
    """Weights it was last known to decode with."""
    told: int = 0
    """The last publication it was told of."""
    seen: int = 0
    """The last it was known to have or to have refused: it reads none before that any more."""
    taken: int = 0
    """The last it was known to have."""
    refusals: int = 0
    """How many in a row."""
    groups: dict[int, int] = field(default_factory=dict)
    """Its groups that are not finished, with the rollouts missing."""
    is_awake: bool = False
    is_to_pause: bool = False
    is_to_tell_state: bool = False
    state: dict[str, Any] | None = None
    """The last it told."""
    has_begun: bool = False
    """Whether it, or one before it in its place, was ever at work."""
    deaths: int = 0
    """Of those in its place, in this attempt."""
    patient_since: float = 0.0
    """When it last owed nothing, by the monotonic clock."""

    @property
    def missing(self) -> int:
        """Rollouts it was asked for and has not finished."""
        return sum(self.groups.values())

    @property
    def reads(self) -> bool:
        """Whether it may be reading what it was told of."""
        return self.stage in ("catching up", "at work")

    @property
    def owes(self) -> str:
        """What it is waited for to do; empty where it may be silent."""
        if self.stage == "gone":
            return ""
        if self.stage == "starting":
            return "was starting"
        if self.seen < self.told:
            return f"was to take publication {self.told}"
        if self.is_to_pause:
            return "was to pause"
        if self.is_to_tell_state:
            return "was to tell its state"
        return f"had {self.missing} rollouts to do" if self.groups and self.is_awake else ""

    def successor(self) -> "Member":
        """The process that takes its place."""
        return Member(has_begun=self.has_begun, deaths=self.deaths)
