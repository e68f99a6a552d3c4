"""The coordinator's record of one generator process."""

from dataclasses import dataclass, field
from typing import Any, Literal

from scalerl.quantities import counted

Stage = Literal["starting", "catching up", "at work", "gone"]
"""Stages in order: silent so far; taking the newest weights; accepting groups; dead and not to be restarted."""


@dataclass(kw_only=True)
class GeneratorRecord:
    """A generator's record: `GeneratorRecord(stage="at work", version=12, told=12, seen=12, groups={331: 16})`."""

    stage: Stage = "starting"
    version: int = 0
    """Weights last known to be in use for decoding."""
    told: int = 0
    """Last publication announced to the generator."""
    seen: int = 0
    """Last publication known to be taken or rejected; the generator no longer reads earlier ones."""
    taken: int = 0
    """Last publication known to be taken."""
    refusals: int = 0
    """Number of rejections in a row."""
    groups: dict[int, int] = field(default_factory=dict)
    """Unfinished groups, with the number of missing rollouts."""
    is_awake: bool = False
    is_to_pause: bool = False
    is_to_tell_state: bool = False
    state: dict[str, Any] | None = None
    """Last state received."""
    has_begun: bool = False
    """True if this generator or a predecessor was ever at work."""

    @property
    def missing(self) -> int:
        """Number of rollouts requested and unfinished."""
        return sum(self.groups.values())

    @property
    def reads(self) -> bool:
        """True if the generator may be reading an announced publication."""
        return self.stage in ("catching up", "at work")

    @property
    def owed(self) -> str:
        """The work whose answer the generator owes; empty if it may be silent."""
        if self.stage == "gone":
            return ""
        if self.stage == "starting":
            return "starting"
        if self.seen < self.told:
            return f"taking publication {self.told}"
        if self.is_to_pause:
            return "pausing"
        if self.is_to_tell_state:
            return "sending its state"
        return f"decoding {counted(self.missing, 'rollout')}" if self.groups and self.is_awake else ""
