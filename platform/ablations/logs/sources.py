"""Finds the kind of a file or folder, and the logs in it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ablations.errors import AblationsError
from ablations.logs.json_logs import read_json, read_json_lines
from ablations.logs.log import Log
from ablations.logs.tables import read_csv_log, read_parquet
from ablations.logs.tensorboard_events import read_event_files
from ablations.logs.trackio_database import read_trackio
from ablations.logs.wandb_offline import read_wandb_file

LOG_READERS: dict[str, Callable[[Path, str], Log]] = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".csv": read_csv_log,
    ".parquet": read_parquet,
    ".wandb": read_wandb_file,
}
DATABASE = ".db"
"""A project of Trackio."""
EVENTS = "*tfevents*"
STATE = "trainer_state.json"
GENERAL_NAMES = {"history", "log", "logs", "metrics", "train", "trainer_state", "training_log"}
"""General file names; the folder then names the run."""
LOG_KINDS = (
    f"files are {', '.join((*LOG_READERS, DATABASE))} and TensorBoard's event files; folders hold one of them, a "
    f"{STATE} or checkpoints with one"
)


@dataclass(frozen=True, kw_only=True)
class LogSource:
    """The files of one log, or of all logs of a project: `LogSource(name="dapo-s1", files=(Path("a.jsonl"),))`."""

    name: str
    files: tuple[Path, ...]

    def read(self) -> list[Log]:
        """The logs; AblationsError if they cannot be read."""
        first = self.files[0]
        if "tfevents" in first.name:
            return [read_event_files(self.files, self.name)]
        if first.suffix.lower() == DATABASE:
            return read_trackio(first)
        return [LOG_READERS[first.suffix.lower()](first, self.name)]


def is_log(path: Path) -> bool:
    """True for a file whose name is that of a log."""
    return path.is_file() and ("tfevents" in path.name or path.suffix.lower() in (*LOG_READERS, DATABASE))


def find_log(path: Path) -> LogSource:
    """The log at a path; AblationsError, naming the content, if there is none."""
    if not path.exists():
        raise AblationsError(f"{path}: no such file or folder; name the logs of runs")
    if path.is_dir():
        return _in_folder(path)
    if not is_log(path):
        raise AblationsError(f"{path}: no readable log; {LOG_KINDS}")
    if "tfevents" in path.name:
        return LogSource(name=path.absolute().parent.name, files=(path,))
    # New rows of SQLite may be in a file beside the database.
    beside = [path.with_name(f"{path.name}-wal")] if path.suffix.lower() == DATABASE else []
    return LogSource(name=_name(path), files=(path, *(one for one in beside if one.exists())))


def _in_folder(folder: Path) -> LogSource:
    name = folder.absolute().name
    if events := sorted(folder.glob(EVENTS)):
        return LogSource(name=name, files=tuple(events))
    if states := sorted(folder.glob(f"checkpoint-*/{STATE}"), key=_number_of_checkpoint):
        return LogSource(name=name, files=(states[-1],))
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in LOG_READERS and path.is_file())
    main = [path for path in found if path.suffix == ".wandb" or path.name == STATE]
    logs = main or [path for path in found if path.suffix != ".json"] or found
    if len(logs) != 1:
        what = f"{len(logs)} logs: {', '.join(path.name for path in logs[:5])}" if logs else "no log"
        raise AblationsError(f"{folder}: {what}; name one file per run; {LOG_KINDS}")
    return LogSource(name=name, files=(logs[0],))


def _name(path: Path) -> str:
    """The name of a run with one file: the file's, or the folder's if the file has a general name."""
    if path.stem.lower() not in GENERAL_NAMES:
        return path.stem
    folder = path.absolute().parent
    return folder.parent.name if folder.name.startswith("checkpoint-") else folder.name


def _number_of_checkpoint(state: Path) -> int:
    found = re.fullmatch(r"checkpoint-(\d+)", state.parent.name)
    return int(found[1]) if found else -1
