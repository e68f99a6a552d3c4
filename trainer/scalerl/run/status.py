"""What a run says of itself in status.json, as a type; nothing here imports torch, so that the platform reads it."""

import json
from dataclasses import asdict, dataclass, fields

from pydantic import TypeAdapter, ValidationError

from scalerl.cluster.unit_state import UnitState
from scalerl.run.sealed_json import read_sealed, seal

STATES = ("running", "done", "failed", "cancelled", "stopped", "requeued", "preempted")
"""What a run may be doing once it has started; the last two are written by a Slurm job."""


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """`RunStatus(state="running", step=120, compute_gpu_hours=0.11, attempt=1, ...)`.

    A run that has not started has the default of every field. So has a field that an earlier version did not write.
    """

    step: int = 0
    warm_start_step: int = 0
    """Supervised steps so far of the warm start that the run trained, or waited for; 0 where it was there."""
    compute_gpu_hours: float = 0.0
    wall_s: float = 0.0
    """Wall-clock seconds that all attempts took for that compute."""
    pass_rate: float | None = None
    """Of the last evaluation."""
    warnings: tuple[str, ...] = ()
    """What the last steps say of the run's health (`scalerl.run.health`)."""
    attempt: int = 0
    budget_gpu_hours: float = 0.0
    pid: int | None = None
    host: str = ""
    code_versions: tuple[str, ...] = ()
    """Of all attempts, in order."""
    processor: str = ""
    threads: int | None = None
    units: tuple[UnitState, ...] = ()
    """The processes of a run on the wall clock, as they were at its last step."""
    state: str = ""
    """One of STATES; empty before the start."""
    message: str = ""
    heartbeat: float = 0.0
    """When the run last gave a sign of life, in seconds since 1970."""

    @property
    def has_started(self) -> bool:
        """Whether any attempt has written it."""
        return bool(self.state)

    @classmethod
    def from_json(cls, content: bytes) -> "RunStatus":
        """Read status.json; ValueError says why it is not one that was written.

        Nothing that a damaged file says is believed: a wrong `done` would end a sweep without the run.
        """
        found, _ = read_sealed(content)
        known = {one.name for one in fields(cls)}
        try:
            values = json.dumps({name: value for name, value in found.items() if name in known})
            status = _STATUS.validate_json(values, strict=True)
        except ValidationError as error:
            complaints = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise ValueError("; ".join(complaints)) from None
        if status.state not in STATES:
            raise ValueError(f"state: found {status.state!r}; must be one of {', '.join(STATES)}")
        return status

    def to_json(self) -> bytes:
        """The content of status.json; fields that are not known yet are left out."""
        unknown = {name for name in ("pid", "threads") if getattr(self, name) is None}
        return seal({name: value for name, value in asdict(self).items() if name not in unknown})


_STATUS = TypeAdapter(RunStatus)
