"""Finds the kind of a file or folder, and the logs in it."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from ablations.errors import AblationsError
from ablations.logs.console import read_console
from ablations.logs.json_logs import read_json, read_json_lines
from ablations.logs.log import Log
from ablations.logs.several_runs import joined
from ablations.logs.tables import read_csv_log, read_parquet
from ablations.logs.tensorboard_events import read_event_files
from ablations.logs.trackio_database import read_trackio
from ablations.logs.trainer_states import newest_history
from ablations.logs.wandb_offline import read_wandb_file

LOG_READERS: dict[str, Callable[[Path, str], Log]] = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".csv": read_csv_log,
    ".parquet": read_parquet,
    ".wandb": read_wandb_file,
    ".tsv": read_csv_log,
    ".log": read_console,
    ".out": read_console,
    ".txt": read_console,
}
DATABASE = ".db"
"""A project of Trackio."""
EVENTS = "*tfevents*"
STATE = "trainer_state.json"
RAY_TUNE = ("result.json", "params.json")
"""Files that Ray Tune writes for a trial. Its `progress.csv` lacks columns that come after the first result, its event
files the configuration."""
GENERAL_NAMES = re.compile(
    r"(checkpoint|history|logs?|metrics|output|progress|results?|scalars|stdout|tb|tensorboard|train|trainer_state"
    r"|training_log|version)([-_]\d+)?",
    re.IGNORECASE,
)
"""Generic names of files and folders; the parent folder then names the run."""
EVAL_FILE = re.compile(
    r"(.+[-_.])?(eval|evaluation|test|val|valid|validation)s?([-_.](history|logs?|metrics|progress|results|scores))?",
    re.IGNORECASE,
)
"""Names of files that may hold the scores of a run whose generic file has only the training metrics."""
PART_OF_A_NAME = re.compile(r"(s|seed|seed[-_=])?\d+", re.IGNORECASE)
"""Names that distinguish the runs of one folder: `dapo/seed1` is `dapo-seed1`."""
ROLLOUTS = re.compile(r"(train|val)_data_step\d+\.jsonl")
"""Files that NeMo-RL writes beside its logs, with the answers of a step."""
DOWNLOAD = re.compile(r"run-(.+)-tag-.+")
"""The name of a file exported by TensorBoard's page, without its extension."""
SECOND_CHOICES = (".json", ".log", ".out", ".txt")
"""Files that count as a folder's log only if no other file can be one."""
LOG_KINDS = (
    f"files are {', '.join((*LOG_READERS, DATABASE))}, the text files also as .gz, and TensorBoard's event files; "
    f"folders hold one of them, a {STATE} or checkpoints with one"
)


@dataclass(frozen=True, kw_only=True)
class LogSource:
    """The files of one log, or of all logs of a project: `LogSource(name="dapo-s1", files=(Path("a.jsonl"),))`.

    Files in several folders are the parts of a run that was resumed, in their order.
    """

    name: str
    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    """Notes on what was left out."""

    def read(self, steps: Sequence[str] = ()) -> list[Log]:
        """The logs; AblationsError if they cannot be read. `steps` are columns that count before a file's own step."""
        folders = {path.parent for path in self.files}
        parts = [self._part(list(files)) for _, files in groupby(self.files, key=lambda path: _highest(path, folders))]
        found = parts[0] if len(parts) == 1 else [joined([log for part in parts for log in part], steps)]
        return [replace(log, notes=(*self.notes, *log.notes)) for log in found] if self.notes else found

    def _part(self, files: Sequence[Path]) -> list[Log]:
        first = files[0]
        if "tfevents" in first.name:
            return [read_event_files(files, self.name)]
        if _kind(first) == DATABASE:
            return read_trackio(first)
        return [LOG_READERS[_kind(first)](first, self.name)]


def _highest(path: Path, folders: Collection[Path]) -> Path:
    """The highest of the folders that a file is in; curves of `add_scalars` lie below the folder of their run."""
    return next(folder for folder in reversed(path.parents) if folder in folders)


def _kind(path: Path) -> str:
    """The ending of a file's name, without that of gzip."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def find_log(path: Path) -> LogSource:
    """The log at a path; AblationsError, naming the content, if there is none."""
    if not path.exists():
        raise AblationsError(f"{path}: no such file or folder; name the logs of runs")
    if path.is_dir():
        return _in_folder(path)
    if "tfevents" in path.name:
        return LogSource(name=name_of_path(path.absolute().parent), files=(path,))
    if _kind(path) not in (*LOG_READERS, DATABASE):
        raise AblationsError(f"{path}: no readable log; {LOG_KINDS}")
    # New rows of SQLite may be in a file beside the database.
    beside = [path.with_name(f"{path.name}-wal")] if _kind(path) == DATABASE else []
    return LogSource(name=name_of_path(path), files=(path, *(one for one in beside if one.exists())))


def _in_folder(folder: Path) -> LogSource:
    name = name_of_path(folder)
    if all((folder / file).is_file() for file in RAY_TUNE):
        return LogSource(name=name, files=(folder / RAY_TUNE[0],))
    if any(folder.glob(EVENTS)):
        return LogSource(name=name, files=_events_in(folder))
    if states := sorted(folder.glob(f"checkpoint-*/{STATE}")):
        # The state that is saved after training stands beside the checkpoints.
        path, note = newest_history([*states, *folder.glob(STATE)])
        return LogSource(name=name, files=(path,), notes=(note,) if note else ())
    found = sorted(path for path in folder.iterdir() if _kind(path) in LOG_READERS and path.is_file())
    found = [path for path in found if not ROLLOUTS.fullmatch(path.name)]
    main = [path for path in found if path.suffix == ".wandb" or path.name == STATE]
    first = [path for path in found if _kind(path) not in SECOND_CHOICES]
    general = [path for path in first if GENERAL_NAMES.fullmatch(_stem(path))]
    if any(EVAL_FILE.fullmatch(_stem(path)) for path in {*first} - {*general}):
        general = []
    logs = main or general or first or [path for path in found if _kind(path) == ".json"] or found
    if len(logs) == 1:
        return LogSource(name=name, files=(logs[0],))
    if not logs and (below := _events_below(folder)):
        return LogSource(name=name, files=below)
    what = f"{len(logs)} logs: {', '.join(path.name for path in logs[:5])}" if logs else "no log"
    has_folders = any(path.is_dir() for path in folder.iterdir())
    of_runs = f" or folder per run, such as {folder}/*" if has_folders else " per run"
    raise AblationsError(f"{folder}: {what}; name one file{of_runs}; {LOG_KINDS}")


def _events_below(folder: Path) -> tuple[Path, ...]:
    """The event files below a folder, folder by folder in the order of their start, which their names begin with.

    Folders inside a folder of event files belong to it.
    """
    found: dict[Path, list[Path]] = {}
    for path in sorted(folder.rglob(EVENTS), key=lambda path: (len(path.parts), path.name)):
        if not any(path.parent != above and path.parent.is_relative_to(above) for above in found):
            found.setdefault(path.parent, []).append(path)
    in_order = sorted(found, key=lambda folder: _by_numbers(found[folder][0].name))
    return tuple(path for one in in_order for path in _events_in(one))


def _events_in(folder: Path) -> tuple[Path, ...]:
    """The event files of a folder, then those of the folders below, where `add_scalars` has a file for each curve."""
    return tuple(sorted(folder.rglob(EVENTS), key=lambda path: (len(path.parts), path)))


def _by_numbers(name: str) -> list[str | int]:
    """What sorts names by the numbers in them: a writer's tenth file of a second comes after its ninth."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def name_of_path(path: Path) -> str:
    """The name of a run: its file or folder, together with or replaced by the parent folder if that name is too
    generic."""
    path = path.absolute()
    name = path.name if path.is_dir() else _stem(path)
    if path.parent.name and GENERAL_NAMES.fullmatch(name):
        return name_of_path(path.parent)
    if path.parent.name and PART_OF_A_NAME.fullmatch(name):
        return f"{name_of_path(path.parent)}-{name}"
    exported = DOWNLOAD.fullmatch(name)
    return exported[1] if exported else name


def _stem(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).stem
