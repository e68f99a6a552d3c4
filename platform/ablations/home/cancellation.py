"""The runs of a sweep that the user has cancelled, kept in a file beside the plan until the sweep is restarted.

sweeps/loo/cancelled
["81d2f0a95c3b"]        run ids; `null` for the whole sweep
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import write_atomically

_RUNS = TypeAdapter(list[str] | None)


@dataclass(frozen=True)
class Cancellation:
    """The cancelled runs in a file: `Cancellation(path=home.path / "sweeps" / "loo" / "cancelled")`."""

    path: Path

    @property
    def is_whole(self) -> bool:
        """True if the whole sweep is cancelled, not only some of its runs."""
        return self._read() is None

    def __contains__(self, run_id: str) -> bool:
        cancelled = self._read()
        return cancelled is None or run_id in cancelled

    def _read(self) -> list[str] | None:
        try:
            return checked(parsed_json(self.path.read_bytes()), _RUNS)
        except FileNotFoundError:
            return []
        except ValueError as error:
            raise AblationsError(f"{self.path}: unreadable ({error}); delete the file and cancel again") from error

    def add(self, run_ids: Iterable[str] | None) -> None:
        """Cancel these runs too; None cancels the whole sweep."""
        before = self._read()
        content = None if before is None or run_ids is None else [*before, *run_ids]
        write_atomically(self.path, json.dumps(content).encode())

    def lift(self) -> None:
        """Take the cancellation back; nothing happens if there is none."""
        self.path.unlink(missing_ok=True)
