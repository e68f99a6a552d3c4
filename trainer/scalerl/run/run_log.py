"""The run log `metrics.jsonl`: one JSON object per line, readable after any crash.

    {"kind": "eval", "step": 0, "weight_version": 0, "compute_gpu_hours": 0.0, "flops": 0.0, "tokens": 0,
     "task": "k_smallest", "pass_rate": 0.31, "num_prompts": 256, "num_samples": 2048, "wall_s": 4.1, ...}
    {"kind": "train", "step": 1, "compute_gpu_hours": 0.0003, "loss": -0.012, ...}

Rows are in chronological order. `WALL_FIELDS` differ between executions; on the virtual clock everything else is
bit-exact for one recipe, seed, thread count and kind of processor.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from scalerl.durable import naming, persistently
from scalerl.plain_json import parsed_json
from scalerl.run.sealed_json import read_sealed

WALL_FIELDS = frozenset({"wall_s", "off_clock_s"})
LOG_FILE = "metrics.jsonl"
BYTES_AT_ONCE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of a run: `Progress(step=120, compute_gpu_hours=0.11, flops=478205184, tokens=35584)`."""

    step: int
    """Optimiser steps taken."""
    compute_gpu_hours: float
    flops: int
    tokens: int
    """Tokens generated."""


def evaluation_row(
    kind: Literal["eval", "downstream"], progress: Progress, measured: Mapping[str, Any], wall_s: float
) -> dict[str, Any]:
    """The row of one evaluation, on held-out prompts or on a task file that is never trained on.

    `measured` has the evaluator's columns: task, pass_rate, num_prompts, ...; the weights are those of `progress`.
    """
    return {"kind": kind, **asdict(progress), "weight_version": progress.step, **measured, "wall_s": wall_s}


def read_rows(path: Path, kind: str | None = None) -> Iterator[dict[str, Any]]:
    """Rows of `path` in order; a missing file has none, and a last line torn by a crash is skipped.

    Raises ValueError naming file and line if any other line is not a JSON object.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                row = parsed_json(line)
                if not isinstance(row, dict):
                    raise ValueError("not an object")
            except ValueError as error:
                raise ValueError(f"{path}:{number}: not a metrics row ({error}): {line[:60]!r}") from error
            if kind is None or row.get("kind") == kind:
                yield row


@dataclass(frozen=True, kw_only=True)
class LogMark:
    """Mark of the log at a checkpoint: `LogMark(bytes=48211, sha256="3f0c...")`."""

    bytes: int
    sha256: str
    """SHA-256 of these bytes."""

    def fault(self, path: Path) -> str | None:
        """The fault in that part of the file; None if it is unchanged."""
        if not path.exists():
            return None if self.bytes == 0 else f"{path} is missing"
        with path.open("rb") as file:
            found, size = hash_of_beginning(file, self.bytes)
        if size < self.bytes:
            return f"{path} has {size} bytes, but had {self.bytes} when the checkpoint was written"
        if found.hexdigest() != self.sha256:
            return f"{path} has changed since it was written, in its first {self.bytes} bytes"
        return None


def hash_of_beginning(file: BinaryIO, length: int) -> tuple["hashlib._Hash", int]:
    """SHA-256 of the next `length` bytes of a file, and how many there were; the file position is then after them."""
    found, size = hashlib.sha256(), 0
    while part := file.read(min(BYTES_AT_ONCE, length - size)):
        found.update(part)
        size += len(part)
    return found, size


EMPTY_LOG = LogMark(bytes=0, sha256=hashlib.sha256().hexdigest())


def log_fault(log: Path, checkpoint: Path) -> str | None:
    """The fault in the log up to the last checkpoint; None if it is unchanged, or if no record of it exists.

    A damaged manifest counts as no record: the next training attempt reports it. Formats before 2 kept no SHA-256.
    """
    try:
        manifest, is_sealed = read_sealed((checkpoint / "manifest.json").read_bytes())
        mark = LogMark(**manifest["log"]) if is_sealed else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return mark.fault(log) if mark else None


class MetricsLog:
    """Appends rows to the log; `sync` flushes them to disk and returns the log's mark."""

    def __init__(self, path: Path, length: int) -> None:
        """Open `path` for appending after its first `length` bytes, cutting off later rows of a crashed attempt."""
        path.touch()
        self._path, self._file = path, path.open("r+b")
        self._file.truncate(length)
        self._sha256, _ = hash_of_beginning(self._file, length)

    def write(self, row: Mapping[str, Any]) -> None:
        """Append one row."""
        line = json.dumps(row, allow_nan=False).encode() + b"\n"
        with naming(self._path):
            self._file.write(line)
        persistently(self._file.flush, self._path)
        self._sha256.update(line)

    def sync(self) -> LogMark:
        """Flush all rows to disk and return the log's mark."""
        persistently(self._file.flush, self._path)
        persistently(lambda: os.fsync(self._file.fileno()), self._path)
        return LogMark(bytes=self._file.tell(), sha256=self._sha256.hexdigest())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
