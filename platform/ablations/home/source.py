"""Where an imported run comes from: `source.json` in its folder, which runs trained here do not have.

{"reader": "verl", "version": "0.1.0 3f0c9a1b2d4e", "place": "runs/dapo-s1.jsonl", "start": "seed 1",
 "read_as": {"score": "val-core/gsm8k/acc", "compute": "timing_s/step with --gpus 8"},
 "files": [{"path": "/data/runs/dapo-s1.jsonl", "bytes": 48211, "modified_ns": 1764167574000000000,
            "sha256": "81d2..."}]}
"""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from scalerl.durable import file_sha256, write_atomically
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import RunFolder

SOURCE_FILE = "source.json"
JUST_NOW_NS = 100_000_000
"""Age below which a further change may not show in a file's time, since some file systems round it."""


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A file as it was read: `SourceFile(path="/data/dapo-s1.jsonl", bytes=48211, modified_ns=0, sha256="81d2")`."""

    path: str
    bytes: int
    modified_ns: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "SourceFile":
        """The file in its current state; OSError if it cannot be read."""
        found = path.stat()
        is_at_rest = time.time_ns() - found.st_mtime_ns > JUST_NOW_NS
        return cls(
            path=str(path.absolute()),
            bytes=found.st_size,
            modified_ns=found.st_mtime_ns if is_at_rest else 0,
            sha256=file_sha256(path),
        )

    @property
    def is_unchanged(self) -> bool:
        """True if the file has the same size and time as when it was read."""
        try:
            found = Path(self.path).stat()
        except OSError:
            return False
        return (found.st_size, found.st_mtime_ns) == (self.bytes, self.modified_ns)


@dataclass(frozen=True, kw_only=True)
class RunSource:
    """The source of an imported run: `RunSource(reader="verl", version="0.1.0 3f0c9a1b2d", place="a.jsonl")`."""

    reader: str
    """The trainer or kind of file: `verl`, `columns`, `curves`, `ablations.start`, `MLflow`."""
    version: str
    """Version of the platform, and ten digits of the hash of the code that reads."""
    place: str
    """Name of the log in messages."""
    start: str = ""
    """Runs with equal, non-empty starts began alike (`ablations.fit.curve.Curve.start`)."""
    read_as: Mapping[str, str] = field(default_factory=dict)
    """What score and compute are made of: {"score": "acc", "compute": "timing_s/step with --gpus 8"}"""
    files: tuple[SourceFile, ...] = ()

    def write(self, folder: RunFolder) -> None:
        """Write the file if its content is new, so that readings of the run stay valid."""
        path, content = folder.path / SOURCE_FILE, json.dumps(asdict(self), indent=1).encode()
        if not path.exists() or path.read_bytes() != content:
            write_atomically(path, content)


def is_imported(folder: RunFolder) -> bool:
    """True if the run was imported, not trained here."""
    return (folder.path / SOURCE_FILE).exists()


def source_of(folder: RunFolder) -> RunSource | None:
    """The source of an imported run; None for a run that was trained here, AblationsError if the file is damaged."""
    path = folder.path / SOURCE_FILE
    try:
        return checked(parsed_json(path.read_bytes()), _SOURCE)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise AblationsError(f"{path}: no source of an imported run ({error}); import the run again") from None


_SOURCE = TypeAdapter(RunSource)
