"""Which runs of a sweep its user has cancelled: a file beside its plan, until the sweep is started again.

sweeps/loo/cancelled
["81d2f0a95c3b"]        runs; `null` for the whole sweep
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ablations.errors import AblationsError
from scalerl.run.run_folder import write_atomically


@dataclass(frozen=True)
class Cancellation:
    """`Cancellation(path=home.path / "sweeps" / "loo" / "cancelled")`."""

    path: Path

    @property
    def is_whole(self) -> bool:
        """Whether the whole sweep is cancelled."""
        return self._read() is None

    def __contains__(self, run_id: str) -> bool:
        cancelled = self._read()
        return cancelled is None or run_id in cancelled

    def _read(self) -> list[str] | None:
        try:
            return json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return []
        except ValueError as error:
            raise AblationsError(f"{self.path}: not readable ({error}); remove it, and cancel again") from error

    def add(self, run_ids: Iterable[str] | None) -> None:
        """Cancel some runs more, or, with None, all."""
        before = self._read()
        content = None if before is None or run_ids is None else [*before, *run_ids]
        write_atomically(self.path, json.dumps(content).encode())

    def lift(self) -> None:
        """Cancel nothing any more."""
        self.path.unlink(missing_ok=True)
