"""Curves: pass rate against compute, the thing every fit starts from."""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

REQUIRED_COLUMNS = ("curve", "compute", "score")
COUNT_COLUMNS = ("prompts", "samples", "step")


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Held-out readings of one run, in ascending compute.

    `compute` is in any unit; a reading at compute 0 is the pass rate before RL. `samples` counts the generations behind
    each score and gives the sampling noise; `prompts` and `step` only travel along.

        Curve(name="scalerl-s0", compute=[0, 213, 426], score=[.31, .33, .36], samples=[16000, 16000, 16000])
    """

    name: str
    compute: np.ndarray
    score: np.ndarray
    samples: np.ndarray | None = None
    prompts: np.ndarray | None = None
    step: np.ndarray | None = None

    def __post_init__(self) -> None:
        compute = np.asarray(self.compute, dtype=float)
        if compute.ndim != 1 or compute.size == 0:
            raise ValueError(
                f"curve {self.name!r}: compute has shape {compute.shape}; it must be a list of at least one reading"
            )
        for field in ("compute", "score", *COUNT_COLUMNS):
            if getattr(self, field) is None:
                continue
            values = np.array(getattr(self, field), dtype=float)
            if values.shape != compute.shape:
                raise ValueError(
                    f"curve {self.name!r}: {field} has shape {values.shape} and compute {compute.shape}; "
                    "they need one value a reading"
                )
            for index, value in enumerate(values):
                if problem := _problem(field, value):
                    raise ValueError(f"curve {self.name!r}, reading {index + 1}: {problem}")
            values.flags.writeable = False
            object.__setattr__(self, field, values)
        for before, after in zip(self.compute[:-1], self.compute[1:], strict=True):
            if after == before:
                raise ValueError(
                    f"curve {self.name!r}: compute {after:g} appears twice; a curve has one score a compute"
                )
            if after < before:
                raise ValueError(
                    f"curve {self.name!r}: compute {after:g} comes after {before:g}; readings must ascend in compute"
                )


def read_csv(path: Path | str) -> list[Curve]:
    """Curves of a CSV file with columns curve, compute, score and, if known, prompts, samples, step.

    Curves come in the order in which they first appear; the readings of each are sorted by compute.
    """
    path = Path(path)
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        header = reader.fieldnames or []
        if missing := [column for column in REQUIRED_COLUMNS if column not in header]:
            raise ValueError(
                f"{path}: missing column {missing}; found {list(header)}, needed {list(REQUIRED_COLUMNS)} "
                f"and, if known, {list(COUNT_COLUMNS)}"
            )
        columns = ["compute", "score", *(column for column in COUNT_COLUMNS if column in header)]
        readings: dict[str, dict[float, dict[str, float]]] = {}
        for row in reader:
            where = f"{path}, line {reader.line_num}"
            name = (row["curve"] or "").strip()
            if not name:
                raise ValueError(f"{where}, column 'curve': empty; every row names its curve")
            reading = {column: _number(row[column], column, where) for column in columns}
            if reading["compute"] in readings.setdefault(name, {}):
                raise ValueError(
                    f"{where}, column 'compute': {row['compute']} appears twice in curve {name!r}; "
                    "a curve has one score a compute"
                )
            readings[name][reading["compute"]] = reading
    if not readings:
        raise ValueError(f"{path}: no rows below the header; a curve needs one row a reading")
    return [_curve(name, [rows[compute] for compute in sorted(rows)]) for name, rows in readings.items()]


def _curve(name: str, rows: list[dict[str, float]]) -> Curve:
    columns = {column: np.array([row[column] for row in rows]) for column in rows[0]}
    return Curve(
        name=name,
        compute=columns["compute"],
        score=columns["score"],
        samples=columns.get("samples"),
        prompts=columns.get("prompts"),
        step=columns.get("step"),
    )


def _number(text: str | None, column: str, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        raise ValueError(f"{where}, column {column!r}: found {text!r}; it must be a number") from None
    if problem := _problem(column, value):
        raise ValueError(f"{where}, column {column!r}: {problem}")
    return value


def _problem(field: str, value: float) -> str | None:
    """Why `value` cannot stand in `field`, or None."""
    if not math.isfinite(value):
        return f"{field} is {value}; it must be a finite number"
    if field == "score" and not 0 <= value <= 1:
        return f"score is {value:g}; a pass rate lies in [0, 1]"
    if field in ("samples", "prompts") and value <= 0:
        return f"{field} is {value:g}; a reading needs at least one"
    if value < 0:
        return f"{field} is {value:g}; it cannot be negative"
    return None
