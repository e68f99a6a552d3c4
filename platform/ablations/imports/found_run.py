"""A run found in a source of other trainers, and what a home folder remembers of it between imports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ablations.fit.curve import Curve
from ablations.home.source import SourceFile
from ablations.logs.rows_of_run import rows_of_curve


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundRun:
    """A run of another trainer, or the reason why it has no curve: `FoundRun(place="a.jsonl", variant="a", seed=None)`.

    The name of its curve does not matter, since its place in the plan gives it another.
    """

    place: str
    """Name of the log in messages."""
    variant: str = ""
    seed: int | None = None
    """None if the source names none; the runs of a variant are then numbered."""
    start: str = ""
    curve: Curve | None = None
    training: Sequence[dict[str, Any]] = ()
    """Rows of training steps."""
    evaluations: Sequence[dict[str, Any]] = ()
    """Evaluation rows that already have the form of the run log; without any, they are made from the curve."""
    score: str = ""
    """The columns that its score was read from; empty if the source has just one score."""
    read_as: Mapping[str, str] = field(default_factory=dict)
    """What its score and its compute are made of: {"score": "acc", "compute": "timing_s/step with --gpus 8"}."""
    warnings: tuple[str, ...] = ()
    reason: str = ""
    is_stopped: bool = False
    """True if it ended by itself or by a rule, as far as the source says."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of its run log, by step."""
        evaluated = self.evaluations or ([] if self.curve is None else rows_of_curve(self.curve))
        return sorted([*self.training, *evaluated], key=lambda row: (row["step"], row["kind"] == "eval"))


class ForeignSource(Protocol):
    """Files, or an experiment of MLflow, with one run or several."""

    @property
    def key(self) -> str:
        """What distinguishes the source from others, such as an absolute path."""
        ...

    @property
    def reader(self) -> str:
        """The trainer or the kind of source, as in `RunSource.reader`."""
        ...

    @property
    def files(self) -> Sequence[Path]:
        """All files that are read; empty if the source is not in files and has to be read each time."""
        ...

    @property
    def options(self) -> Mapping[str, Any]:
        """Everything else that decides what is read."""
        ...

    def read(self) -> tuple[Sequence[FoundRun], Sequence[str]]:
        """The runs, unreadable ones with a reason, and notes; raises AblationsError if no run can be found."""
        ...


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """A run as it was imported: `RunRecord(id="3f0c9a1b2d4e", place="a.jsonl", variant="a", seed=None, ...)`."""

    id: str
    place: str
    variant: str
    seed: int | None
    start: str
    has_rows: bool
    reason: str
    warnings: tuple[str, ...]
    steps: tuple[float, float] | None = None
    """The first and the last step of its curve, if the log has steps."""
    last_compute: float | None = None
    """Compute of its last reading; None without a curve."""
    num_readings: int = 0
    """Number of readings after compute 0."""
    pass_rate: float | None = None
    is_stopped: bool = False
    score: str = ""
    """The columns that its score was read from."""
    read_as: Mapping[str, str] = field(default_factory=dict)
    """What its score and its compute are made of."""

    @classmethod
    def of(cls, run_id: str, run: FoundRun) -> "RunRecord":
        curve, steps, of_curve = run.curve, None, dict[str, Any]()
        if curve is not None:
            steps = None if curve.step is None else (float(curve.step[0]), float(curve.step[-1]))
            of_curve = {
                "last_compute": float(curve.compute[-1]),
                "num_readings": int(np.sum(curve.compute > 0)),
                "pass_rate": float(curve.score[-1]),
            }
        return cls(
            id=run_id,
            place=run.place,
            variant=run.variant,
            seed=run.seed,
            start=run.start,
            has_rows=bool(run.curve is not None or run.training),
            reason=run.reason,
            is_stopped=run.is_stopped,
            warnings=run.warnings,
            score=run.score,
            read_as=run.read_as,
            steps=steps,
            **of_curve,
        )


@dataclass(frozen=True, kw_only=True)
class SourceRecord:
    """A source as it was imported; as long as it does not change, it is not read again."""

    key: str
    reader: str
    version: str
    options: str
    """Hash of the options."""
    files: tuple[SourceFile, ...]
    runs: tuple[RunRecord, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_gone(self) -> bool:
        """True if none of its files exists any more."""
        return bool(self.files) and not any(Path(one.path).exists() for one in self.files)
