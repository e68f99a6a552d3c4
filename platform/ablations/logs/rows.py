"""Rows as trainers write them, and the columns of a log made from them on demand."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import NoneType
from typing import Any

import numpy as np

from ablations.errors import AblationsError, Place
from ablations.fit.curve_file import number_advice
from ablations.logs.log import Log

OF_RUNS = {"seed", "run", "run_id", "trial"}
"""Names of columns whose numbers may tell runs apart."""
MISSING = {"", "-", "--", "n/a", "na", "none", "null", "<na>"}
"""Texts of a value that is missing, in small letters."""
PLAIN_TYPES = {bool, float, int, NoneType}


def flat(row: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested mappings, with the names of all levels joined by a slash."""
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{name}/")
        else:
            yield f"{above}{name}", value


def as_number(value: Any) -> float | None:
    """A number as it was logged, also as text such as "NaN"; None for anything else."""
    try:
        # float() would read 1_0 as 10.
        return float(value.replace("_", "?") if isinstance(value, str) else value)
    except (TypeError, ValueError):
        return None


class RowColumns(Mapping[str, np.ndarray]):
    """The columns of rows, float64 (rows,), NaN if a row has no value.

    A log has hundreds of columns of which a curve needs three, so each is made on first use. Raises AblationsError for
    a column of text.
    """

    def __init__(self, rows: Sequence[tuple[str, Mapping[str, Any]]], place: str) -> None:
        self.rows = [(where, dict(flat(row)) if dict in map(type, row.values()) else row) for where, row in rows]
        self._names: dict[str, None] = {}
        for _, row in self.rows:
            self._names.update(dict.fromkeys(row))
        self._place = place
        self._column = cache(self._made)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        return self._column(name)[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def nans(self, name: str) -> int:
        """Number of NaN values logged in a column; missing values do not count."""
        return self._column(name)[1]

    def config(self) -> dict[str, str]:
        """The columns with the same text or whole number in all rows that have one."""
        found = {}
        for name in self._names:
            only = None
            for _, row in self.rows:
                value = row.get(name)
                if value is None or value == "":
                    continue
                if not isinstance(value, str | int) or (only is not None and value != only):
                    break
                only = value
            else:
                found |= {} if only is None else {name: str(only)}
        return found

    def labels(self) -> dict[str, list[str]]:
        """The columns that may tell runs apart, with the text of each row: several words, or several seeds."""
        found = {}
        for name in self._names:
            texts = ["" if row.get(name) is None else str(row[name]) for _, row in self.rows]
            words = {*texts} - {""}
            is_of_runs = re.split(r"[/.]", name)[-1].casefold() in OF_RUNS
            if 1 < len(words) <= len(texts) / 2 and (is_of_runs or all(as_number(one) is None for one in words)):
                found[name] = texts
        return found

    def _made(self, name: str) -> tuple[np.ndarray, int]:
        values = [row.get(name) for _, row in self.rows]
        if not {*map(type, values)} <= PLAIN_TYPES:
            values = [self._number(name, *at) for at in enumerate(values)]
        numbers = np.array([math.nan if value is None else value for value in values], dtype=float)
        return numbers, int(np.isnan(numbers).sum()) - values.count(None)

    def _number(self, name: str, row: int, value: Any) -> float | None:
        if value is None or (isinstance(value, str) and value.casefold() in MISSING):
            return None
        number = as_number(value)
        if number is None:
            raise AblationsError(
                f"{self._place}: column {name!r} holds text, {str(value)[:40]!r} in {self.rows[row][0]}; use a "
                f"column of numbers{number_advice(str(value))}"
            )
        return number


def log_of_rows(
    rows: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    name: str,
    place: str,
    steps: Sequence[str],
    config: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
    own: Mapping[str, str] | None = None,
    without: str = "no rows",
    written: tuple[float, float] | None = None,
) -> Log:
    """A log of rows, each with its place, such as "line 7"; without a config, constant columns take its place.

    `own` is added to the configuration; `without` is what a FileError says if there is no row.
    """
    if not rows:
        raise Place(source=place).error(without, "the trainer must have logged a step")
    columns = RowColumns(rows, place)
    return Log(
        name=name,
        place=place,
        columns=columns,
        steps=steps,
        config={**(columns.config() if config is None else config), **(own or {})},
        nans=columns.nans,
        labels=columns.labels,
        notes=notes,
        written=written,
    )
