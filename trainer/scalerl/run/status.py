"""A run's status, as stored in status.json. This module does not import torch, so the platform can read it."""

from dataclasses import asdict, dataclass

from pydantic import TypeAdapter, ValidationError

from scalerl.cluster.placement import UnitState
from scalerl.run.sealed_json import read_sealed, seal

STATES = ("running", "done", "failed", "cancelled", "stopped", "pending", "requeued", "preempted")
"""Possible states of a run that has started. A sweep writes `pending` before it resumes a run, and a Slurm job the last
two."""


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """`RunStatus(state="running", step=120, compute_gpu_hours=0.11, attempt=1, ...)`, the status of a run.

    A field has its default in a run that has not started, and where an earlier version did not write it.
    """

    step: int = 0
    warm_start_step: int = 0
    """Supervised steps so far of the warm start that the run trains or waits for; 0 if it already existed."""
    compute_gpu_hours: float = 0.0
    wall_s: float = 0.0
    """Wall-clock seconds spent on that compute, over all attempts."""
    pace_s: float | None = None
    """Wall-clock seconds for a GPU-hour over the later half of this attempt's compute; None before its second step."""
    pass_rate: float | None = None
    """Pass rate of the last evaluation."""
    warnings: tuple[str, ...] = ()
    """Warnings about the run's health (`scalerl.run.health`)."""
    attempt: int = 0
    budget_gpu_hours: float = 0.0
    pid: int | None = None
    host: str = ""
    code_versions: tuple[str, ...] = ()
    """Code versions of all attempts, in order."""
    processor: str = ""
    threads: int | None = None
    units: tuple[UnitState, ...] = ()
    """Processes of a run on the wall clock, as of its last step."""
    state: str = ""
    """One of STATES; empty before the start."""
    message: str = ""
    heartbeat: float = 0.0
    """Time of the run's last activity, in seconds since 1970."""

    @property
    def has_started(self) -> bool:
        """True if any attempt has written the status."""
        return bool(self.state)

    @classmethod
    def from_json(cls, content: bytes) -> "RunStatus":
        """Read status.json; ValueError explains why the content is invalid.

        Nothing in a damaged file is trusted: a wrong `done` would end a sweep without the run. Unknown fields are
        ignored.
        """
        read_sealed(content)
        try:
            status = _STATUS.validate_json(content, strict=True)
        except ValidationError as error:
            complaints = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise ValueError("; ".join(complaints)) from None
        if status.state not in STATES:
            raise ValueError(f"state: found {status.state!r}; must be one of {', '.join(STATES)}")
        return status

    def to_json(self) -> bytes:
        """The content of status.json, without fields that are still unknown."""
        unknown = {name for name in ("pid", "threads", "pace_s") if getattr(self, name) is None}
        return seal({name: value for name, value in asdict(self).items() if name not in unknown})


_STATUS = TypeAdapter(RunStatus)
