"""The run log `metrics.jsonl`: one JSON object per line, readable after any crash.

    {"kind": "eval", "step": 0, "weight_version": 0, "compute_gpu_hours": 0.0, "flops": 0.0, "tokens": 0,
     "task": "k_smallest", "pass_rate": 0.31, "num_prompts": 256, "num_samples": 2048, "wall_s": 4.1, ...}
    {"kind": "train", "step": 1, "compute_gpu_hours": 0.0003, "loss": -0.012, ...}

Rows are in order of time. `WALL_FIELDS` differ between executions; on the virtual clock everything else is bit-exact
for one recipe, seed, thread count and kind of processor.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from scalerl.cluster.device_seconds import Activity, Role

WALL_FIELDS = frozenset({"wall_s", "off_clock_s"})
LOG_FILE = "metrics.jsonl"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of a run: `Progress(step=120, compute_gpu_hours=0.11, flops=478205184, tokens=35584)`."""

    step: int
    """Optimiser steps taken."""
    compute_gpu_hours: float
    flops: int
    tokens: int
    """Tokens generated."""
    compute_without_attention_gpu_hours: float | None = None
    """A second account, which leaves out attention; None if attention is not charged."""

    def to_json(self) -> dict[str, Any]:
        """The columns, without accounts that are not kept."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Row(Protocol):
    """A line of the run log: EvaluationRow or TrainRow."""

    def to_json(self) -> dict[str, Any]:
        """The row as written, its kind first."""
        ...


EvaluationKind = Literal["eval", "downstream"]


@dataclass(frozen=True, kw_only=True)
class EvaluationRow:
    """One evaluation: of held-out prompts of a task or of a mix, or of a task file that is never trained on."""

    kind: EvaluationKind
    progress: Progress
    weight_version: int
    """Version of the measured weights."""
    measured: Mapping[str, Any]
    """The evaluator's columns: task, pass_rate, num_prompts, ..."""
    wall_s: float

    def to_json(self) -> dict[str, Any]:
        """The row as written."""
        progress, version = self.progress.to_json(), self.weight_version
        return {"kind": self.kind, **progress, "weight_version": version, **self.measured, "wall_s": self.wall_s}


@dataclass(frozen=True, kw_only=True)
class RolloutColumns:
    """Columns of a train row about the rollouts trained on."""

    reward_mean: float
    pass_rate: float
    zero_variance: float
    """Share of groups whose rewards are all equal."""
    truncated: float
    """Share of rollouts cut off at the token limit."""
    interrupted: float
    """Share of rollouts whose thinking was interrupted."""
    mean_tokens: float
    staleness: dict[str, int]
    """Number of tokens by staleness: trainer version minus the version that made the token."""


@dataclass(frozen=True, kw_only=True)
class TrainRow:
    """One optimiser step."""

    progress: Progress
    learner: Mapping[str, Any]
    """The learner's columns: loss, grad_norm, ..."""
    rollouts: RolloutColumns
    outcomes: dict[str, int]
    """Number of answers by verdict since the last train row, including answers not trained on."""
    retired: int
    """Number of retired prompts."""
    epoch: int
    generator_idle: float
    """Idle share of the generators' device time so far."""
    trainer_idle: float
    """Idle share of the trainers' device time so far."""
    device_s: dict[Role, dict[Activity, float]]
    """Device-seconds so far by role and activity; see `scalerl.cluster.device_seconds`."""
    tokens_per_s: float
    """Tokens generated per second, over all time so far."""
    mfu: dict[Role, float]
    """Share of the devices' peak rate that went into model FLOPs so far, by role."""
    off_clock_s: dict[str, float]
    """Seconds of work not charged as compute so far: start, evaluate, checkpoint."""
    wall_s: float

    def to_json(self) -> dict[str, Any]:
        """The row as written."""
        return {
            "kind": "train",
            **self.progress.to_json(),
            **self.learner,
            **asdict(self.rollouts),
            "outcomes": self.outcomes,
            "retired": self.retired,
            "epoch": self.epoch,
            "generator_idle": self.generator_idle,
            "trainer_idle": self.trainer_idle,
            "device_s": self.device_s,
            "tokens_per_s": self.tokens_per_s,
            "mfu": self.mfu,
            "off_clock_s": self.off_clock_s,
            "wall_s": self.wall_s,
        }


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
                row = json.loads(line)
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
            found = file.read(self.bytes)
        if len(found) < self.bytes:
            return f"{path} has {len(found)} bytes, but had {self.bytes} when the checkpoint was written"
        if hashlib.sha256(found).hexdigest() != self.sha256:
            return f"{path} has changed since it was written, in its first {self.bytes} bytes"
        return None


EMPTY_LOG = LogMark(bytes=0, sha256=hashlib.sha256().hexdigest())


class MetricsLog:
    """Appends rows to the log; `sync` flushes them to disk and returns the log's mark."""

    def __init__(self, path: Path, length: int) -> None:
        """Open `path` for appending after its first `length` bytes, cutting off later rows of a crashed attempt."""
        path.touch()
        self._file = path.open("r+b")
        self._file.truncate(length)
        self._sha256 = hashlib.sha256(self._file.read(length))

    def write(self, row: Row) -> None:
        """Append one row."""
        line = json.dumps(row.to_json(), allow_nan=False).encode() + b"\n"
        self._file.write(line)
        self._file.flush()
        self._sha256.update(line)

    def sync(self) -> LogMark:
        """Flush all rows to disk and return the log's mark."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return LogMark(bytes=self._file.tell(), sha256=self._sha256.hexdigest())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
