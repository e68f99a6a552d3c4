"""The state with the whole history among those that Hugging Face's Trainer leaves in a folder of checkpoints.

    out/checkpoint-20/trainer_state.json   out/checkpoint-40/trainer_state.json   out/trainer_state.json

Each state has the history up to its step, so of two states of one run one has all rows of the other. A folder that was
used again may still have the checkpoint of an older run, or of a lost attempt, with a larger number: only the time of
its file tells it apart.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ablations.errors import AblationsError

HISTORY = "log_history"
SUMMARY = "train_runtime"
"""Column of the row that is added after training, and that no checkpoint has."""
LEAST_GAP_S = 60.0
"""Smaller time differences, in seconds, between the files of two runs may come from copying them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainerState:
    """A `trainer_state.json`."""

    path: Path
    rows: frozenset[str]
    """Its history as texts, without the final summary of training."""
    modified: float

    @property
    def name(self) -> str:
        """The name of its checkpoint, or of the file next to the checkpoints."""
        return self.path.parent.name if self.path.parent.name.startswith("checkpoint-") else self.path.name

    def is_of_run_of(self, other: "TrainerState") -> bool:
        """True if one of the two histories has all rows of the other."""
        return self.rows <= other.rows or other.rows <= self.rows


def newest_history(paths: Sequence[Path]) -> tuple[Path, str]:
    """The state with the longest history of the newest run, and a note on the states of other runs, which are left out.

    Raises AblationsError if the times of the files do not tell which run is the newest.
    """
    states = [_read(path) for path in paths]
    newest = max(states, key=lambda state: state.modified)
    same = [state for state in states if state.is_of_run_of(newest)]
    longest = max(same, key=lambda state: (len(state.rows), state.path.stat().st_size))
    others = [state for state in states if not state.is_of_run_of(longest)]
    if not others:
        return longest.path, ""
    names = ", ".join(state.name for state in others)
    own = [state for state in same if not any(state.is_of_run_of(other) for other in others)]
    gap = min(state.modified for state in own) - max(state.modified for state in others)
    if gap < LEAST_GAP_S:
        raise AblationsError(
            f"{longest.path}: {longest.name} and {names} are from different runs, and their file times do not "
            "show which is newer; name the checkpoint of the run, or move the others to another folder"
        )
    several = "are" if len(others) > 1 else "is"
    return (
        longest.path,
        f"{names} {several} of an older run, or of a lost attempt, in this folder and {several} left out.",
    )


def _read(path: Path) -> TrainerState:
    """A state; its history is empty if it cannot be read, which the reader of the log says."""
    try:
        found = json.loads(path.read_bytes())[HISTORY]
        rows = frozenset(json.dumps(row) for row in found if SUMMARY not in row)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        rows = frozenset[str]()
    return TrainerState(path=path, rows=rows, modified=path.stat().st_mtime)
