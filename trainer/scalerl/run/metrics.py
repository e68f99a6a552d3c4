"""The run log: `metrics.jsonl`, one JSON object a line, and how to read it back whatever a crash left.

    {"kind": "eval", "step": 0, "weight_version": 0, "compute_gpu_hours": 0.0, "flops": 0.0, "tokens": 0,
     "task": "k_smallest", "pass_rate": 0.31, "num_prompts": 256, "num_samples": 2048, "wall_s": 4.1, ...}
    {"kind": "train", "step": 1, "compute_gpu_hours": 0.0003, "loss": -0.012, ...}

Rows are in the order in which they happened. `WALL_FIELDS` differ from one execution to the next; on the virtual clock
everything else is bit-for-bit the same for one recipe, seed, thread count and kind of processor.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from scalerl.cluster.device_seconds import Activity, Role

WALL_FIELDS = frozenset({"wall_s", "off_clock_s"})
LOG_FILE = "metrics.jsonl"


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is: `Progress(step=120, compute_gpu_hours=0.11, flops=478205184, tokens=35584)`."""

    step: int
    """Optimiser steps taken."""
    compute_gpu_hours: float
    flops: int
    tokens: int
    """Generated."""
    compute_without_attention_gpu_hours: float | None = None
    """A second account; None where attention is not charged."""

    def to_json(self) -> dict[str, Any]:
        """The columns; an account that is not kept has none."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Row(Protocol):
    """A line of the run log: EvalRow, DownstreamRow or TrainRow."""

    def to_json(self) -> dict[str, Any]:
        """The row as it is written, its kind first."""
        ...


@dataclass(frozen=True, kw_only=True)
class EvalRow:
    """One held-out evaluation of one task, or of all tasks of a mix."""

    progress: Progress
    weight_version: int
    """Of the weights that were measured."""
    measured: Mapping[str, Any]
    """Columns of the evaluator: task, pass_rate, num_prompts, ..."""
    wall_s: float

    def to_json(self) -> dict[str, Any]:
        """The row as it is written."""
        return {"kind": "eval", **_measurement(self)}


@dataclass(frozen=True, kw_only=True)
class DownstreamRow:
    """One measurement of a task file that is never trained on."""

    progress: Progress
    weight_version: int
    """Of the weights that were measured."""
    measured: Mapping[str, Any]
    """Columns of the evaluator: task, pass_rate, pass_at_1, ..."""
    wall_s: float

    def to_json(self) -> dict[str, Any]:
        """The row as it is written."""
        return {"kind": "downstream", **_measurement(self)}


@dataclass(frozen=True, kw_only=True)
class RolloutColumns:
    """What a train row says of the rollouts trained on."""

    reward_mean: float
    pass_rate: float
    zero_variance: float
    """Share of groups."""
    truncated: float
    """Share of rollouts."""
    interrupted: float
    """Share of rollouts."""
    mean_tokens: float
    staleness: dict[str, int]
    """Number of tokens by trainer version minus the version that made the token."""


@dataclass(frozen=True, kw_only=True)
class TrainRow:
    """One optimiser step."""

    progress: Progress
    learner: Mapping[str, Any]
    """Columns of the learner: loss, grad_norm, ..."""
    rollouts: RolloutColumns
    outcomes: dict[str, int]
    """Answers by verdict since the last such row, those that are not trained on included."""
    retired: int
    """Prompts."""
    epoch: int
    generator_idle: float
    """Share of the device time so far."""
    trainer_idle: float
    """Share of the device time so far."""
    device_s: dict[Role, dict[Activity, float]]
    """Device-seconds so far by role and activity, see `scalerl.cluster.device_seconds`."""
    tokens_per_s: float
    """Generated, of all time so far."""
    mfu: dict[Role, float]
    """By role: share of the devices' peak rate so far that went into the model's FLOPs."""
    off_clock_s: dict[str, float]
    """Seconds of work so far that cost no compute: start, evaluate, checkpoint."""
    wall_s: float

    def to_json(self) -> dict[str, Any]:
        """The row as it is written."""
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


def _measurement(row: EvalRow | DownstreamRow) -> dict[str, Any]:
    """The columns that follow the kind."""
    return {**row.progress.to_json(), "weight_version": row.weight_version, **row.measured, "wall_s": row.wall_s}


def read_rows(path: Path, kind: str | None = None) -> Iterator[dict[str, Any]]:
    """Rows of `path` in order; a missing file has none, and a last line torn by a crash is not a row.

    Raises ValueError naming file and line when a line that is not the last is not a JSON object.
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
    """How the log was when a checkpoint was written: `LogMark(bytes=48211, sha256="3f0c...")`."""

    bytes: int
    sha256: str
    """Of these bytes."""

    def fault(self, path: Path) -> str | None:
        """What is wrong with the part of the file that was there then; None if it is as it was."""
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
    """Appends rows; `sync` makes them durable and says how the file is then."""

    def __init__(self, path: Path, length: int) -> None:
        """Open `path` for appending after its first `length` bytes; what a crashed attempt wrote beyond is cut off."""
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
        """Make all rows durable."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return LogMark(bytes=self._file.tell(), sha256=self._sha256.hexdigest())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
