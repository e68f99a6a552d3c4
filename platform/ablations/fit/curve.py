"""Curves: pass rate against compute, the thing every fit starts from."""

import csv
import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ablations.errors import AblationsError, Place

REQUIRED_COLUMNS = ("curve", "compute", "score")
COUNT_COLUMNS = ("prompts", "samples", "step")
COLUMNS = (*REQUIRED_COLUMNS, *COUNT_COLUMNS)
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Held-out readings of one run, in ascending compute.

    `compute` is in any unit; a reading at compute 0 is the pass rate before RL. `samples` counts the generations behind
    each score and gives the sampling noise; `prompts` and `step` only travel along.

        Curve(name="scalerl-s0", compute=np.array([0.0, 213.0]), score=np.array([0.31, 0.33]), samples=None)
    """

    name: str
    compute: np.ndarray
    score: np.ndarray
    samples: np.ndarray | None = None
    prompts: np.ndarray | None = None
    step: np.ndarray | None = None

    def __repr__(self) -> str:
        ends = " to ".join(f"{compute:g}" for compute in self.compute[[0, -1]])
        return f"<Curve {self.name!r}: {self.compute.size} readings, compute {ends}>"

    def __post_init__(self) -> None:
        compute = np.asarray(self.compute, dtype=float)
        if compute.ndim != 1 or compute.size == 0:
            raise AblationsError(
                f"curve {self.name!r}: compute has shape {compute.shape}; it lists one or more readings"
            )
        for field in ("compute", "score", *COUNT_COLUMNS):
            if getattr(self, field) is None:
                continue
            values = np.array(getattr(self, field), dtype=float)
            if values.shape != compute.shape:
                raise AblationsError(
                    f"curve {self.name!r}: {field} has shape {values.shape}, compute {compute.shape}; they must agree"
                )
            for index, value in enumerate(values):
                if right := _requirement(field, value):
                    raise AblationsError(f"curve {self.name!r}, reading {index + 1}: {field} is {value:g}; {right}")
            values.flags.writeable = False
            object.__setattr__(self, field, values)
        for before, after in zip(self.compute[:-1], self.compute[1:], strict=True):
            if after <= before:
                raise AblationsError(
                    f"curve {self.name!r}: compute {after:g} comes after {before:g}; "
                    "it must ascend, with one score at each compute"
                )


def read_curves(path: Path | str) -> list[Curve]:
    """Curves of a CSV file with columns curve, compute, score and, if known, prompts, samples, step.

    Curves come in the order in which they first appear; the readings of each are sorted by compute. Raises FileError
    naming line and column of what cannot be used.
    """
    header, rows = _read_rows(Path(path))
    if missing := [column for column in REQUIRED_COLUMNS if column not in header]:
        raise Place(source=str(path)).error(
            f"missing columns {missing}, found {header}",
            f"needed are {list(REQUIRED_COLUMNS)} and, if known, {list(COUNT_COLUMNS)}",
        )
    columns = ["compute", "score", *(column for column in COUNT_COLUMNS if column in header)]
    readings: dict[str, dict[float, dict[str, float]]] = {}
    for line, row in rows:
        name = _name(row["curve"], Place(source=str(path), line=line, key="curve"))
        reading = {column: _number(row[column], Place(source=str(path), line=line, key=column)) for column in columns}
        compute = reading["compute"]
        if compute in readings.setdefault(name, {}):
            found = f"{compute:g} appears twice in curve {name!r}"
            raise Place(source=str(path), line=line, key="compute").error(
                found, "a curve has one score at each compute"
            )
        readings[name][compute] = reading
    if not readings:
        raise Place(source=str(path)).error("no rows below a header", "a curve needs one row per reading")
    return [_curve(name, [of_curve[compute] for compute in sorted(of_curve)]) for name, of_curve in readings.items()]


def _read_rows(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str | None]]]]:
    """The header and every row with its line; every field belongs to one column."""
    place = Place(source=str(path))
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            header = [column.strip() for column in reader.fieldnames or []]
            reader.fieldnames = header
            _refuse_second_columns(header, Place(source=str(path), line=reader.line_num))
            rows = [(reader.line_num, row) for row in reader]
    except OSError as error:
        raise place.error(f"cannot be read ({error.strerror})", "name a CSV file that can") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise place.error(f"not CSV text ({error})", "save the file as UTF-8 CSV") from None
    for line, row in rows:
        if surplus := row.get(None):
            raise Place(source=str(path), line=line).error(
                f"{len(header) + len(surplus)} fields below a header of {len(header)}",
                "numbers take a decimal point, not a comma, and a name with a comma stands in double quotes",
            )
    return header, rows


def _refuse_second_columns(header: list[str], place: Place) -> None:
    for column in COLUMNS:
        if (count := header.count(column)) > 1:
            raise place.error(f"{count} columns are called {column!r}", "each is there once; rename the others")


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


def _name(text: str | None, place: Place) -> str:
    name = (text or "").strip()
    if not name:
        raise place.error("empty", "every row names its curve")
    if CONTROL_CHARACTER.search(name):
        raise place.error(f"found {name!r}", "a name has no control characters")
    return name


def _number(text: str | None, place: Place) -> float:
    try:
        # float would read 1_0 as 10.
        value = float((text or "").replace("_", "?"))
    except ValueError:
        raise place.error(f"found {text!r}", "it must be a number") from None
    if right := _requirement(place.key, value):
        raise place.error(f"found {text}", right)
    return value


def _requirement(field: str, value: float) -> str | None:
    """What `value` fails to be as one `field` of a reading, or None."""
    if not math.isfinite(value):
        return "it must be a finite number"
    if field == "score" and not 0 <= value <= 1:
        return "a pass rate lies in [0, 1]"
    if field in ("samples", "prompts") and value <= 0:
        return "a reading needs at least one"
    return "it cannot be negative" if value < 0 else None
