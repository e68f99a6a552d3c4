"""What a run says of itself in status.json, as a type; nothing here imports torch, so that the platform reads it."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """`RunStatus(state="running", step=120, compute_gpu_hours=0.11, attempt=1, ...)`.

    A run that has not started has the default of every field. So has a field that an earlier version did not write.
    """

    step: int = 0
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
    state: str = ""
    """`running`, `done`, `failed` or `cancelled`; a Slurm job also writes `requeued`. Empty before the start."""
    message: str = ""
    heartbeat: float = 0.0
    """When the run last gave a sign of life, in seconds since 1970."""

    @property
    def has_started(self) -> bool:
        """Whether any attempt has written it."""
        return bool(self.state)

    @classmethod
    def from_json(cls, content: bytes) -> "RunStatus":
        """Read status.json; the status before the start if the content is not readable."""
        try:
            found = json.loads(content)
            known = {one.name for one in fields(cls)}
            values: dict[str, Any] = {name: value for name, value in found.items() if name in known}
            for name in ("warnings", "code_versions"):
                values[name] = tuple(values.get(name, ()))
        except (ValueError, AttributeError, TypeError):
            return cls()
        return cls(**values)

    def to_json(self) -> bytes:
        """The content of status.json; fields that are not known yet are left out."""
        unknown = {name for name in ("pid", "threads") if getattr(self, name) is None}
        return json.dumps({name: value for name, value in asdict(self).items() if name not in unknown}).encode()
