"""Rows as trainers write them, and the columns of a log made from them on demand."""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ablations.errors import AblationsError, Place
from ablations.fit.table_file import number_advice
from ablations.logs.log import Log
from ablations.logs.packed import IS_FLOAT, Numbers, Packed, TextOf, pack
from ablations.logs.row_values import (
    NoNumber,
    TwoValues,
    as_number,
    flat,
    has_no_value,
    number_of,
    one_each,
    time_of,
)

OF_RUNS = {"seed", "run", "run_id", "trial"}
"""Names of columns whose numbers may distinguish runs."""
ROWS_OF_A_CHUNK, VALUES_OF_A_CHUNK = 256, 50_000
"""Number of rows packed at once; fewer if they have many values."""
ROWS_BY_COLUMN = 4096
"""Rows of a chunk that arrive by column."""
CLOCKS = {"timestamp", "walltime", "wallclock", "time", "datetime", "date", "createdat", "loggedat", "ts"}
"""Names of columns with the time of day, in lower case without spaces."""
LEAST_TIME = 1e8
"""Numbers of at least this many seconds since 1970 count as times of day."""
MOST_SETS = 64
"""Maximum number of column sets kept apart; those in most rows are kept."""


Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class _Column:
    """The values of a column in some rows that follow each other."""

    rows: np.ndarray | None
    """The place of each value among these rows; None if every row has one."""
    values: Packed


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class _Chunk:
    """Rows that follow each other, by column."""

    begin: int
    size: int
    places: Packed
    """Where each row stands."""
    columns: Mapping[str, _Column]

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        found: list[dict[str, Any]] = [{} for _ in range(self.size)]
        for name, column in self.columns.items():
            at = range(self.size) if column.rows is None else column.rows.tolist()
            for row, value in zip(at, column.values, strict=True):
                found[row][name] = value
        return zip(self.places, found, strict=True)


class RowColumns(Mapping[str, np.ndarray]):
    """The columns of rows, float64 (rows,), NaN if a row has no value.

    Rows are added one by one, each with its place, such as "line 7", and kept by column in little memory (`packed`). A
    log has hundreds of columns of which a curve needs three, so each array is made on first use. Raises AblationsError
    for a column of text.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._names: dict[str, None] = {}
        self._chunks: list[_Chunk] = []
        self._new: list[tuple[str, Row]] = []
        self._new_values = 0
        self._size = 0
        self._column = cache(self._made)

    def add(self, where: str, row: Row) -> None:
        """Add a row."""
        self._new.append((where, one_each(flat(row)) if dict in map(type, row.values()) else row))
        self._new_values += len(row)
        self._size += 1
        if len(self._new) >= ROWS_OF_A_CHUNK or self._new_values >= VALUES_OF_A_CHUNK:
            self._pack()

    def extend(self, places: Sequence[str], columns: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> None:
        """Add rows by their places, and by column the numbers of the rows that have one, counted from 0 and ascending,
        with its value in each, float64."""
        self._pack()
        for begin in range(0, len(places), ROWS_BY_COLUMN):
            here = places[begin : begin + ROWS_BY_COLUMN]
            found = {}
            for name, (rows, values) in columns.items():
                first, end = np.searchsorted(rows, (begin, begin + len(here)))
                if first < end:
                    at = None if end - first == len(here) else (rows[first:end] - begin).astype(np.uint16)
                    found[name] = _Column(rows=at, values=Numbers(values[first:end], IS_FLOAT))
            self._append(here, found)
        self._size += len(places)

    @property
    def num_rows(self) -> int:
        return self._size

    @property
    def rows(self) -> Iterator[tuple[str, Row]]:
        """Each row with its place, in order."""
        self._pack()
        return (row for chunk in self._chunks for row in chunk.rows())

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self:
            raise KeyError(name)
        return self._column(name)[0]

    def __contains__(self, name: object) -> bool:
        self._pack()
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        self._pack()
        return iter(self._names)

    def __len__(self) -> int:
        self._pack()
        return len(self._names)

    def nan_rows(self, name: str) -> np.ndarray:
        """The rows in which a column was logged as NaN; missing values do not count."""
        return self._column(name)[1]

    def config(self) -> dict[str, str]:
        """The columns with the same text or whole number in all rows that have one."""
        found = {}
        for name in self:
            only = None
            for value in self._different(name):
                if value is None or value == "":
                    continue
                if (
                    isinstance(value, TextOf)
                    or not isinstance(value, str | int)
                    or (only is not None and value != only)
                ):
                    break
                only = value
            else:
                found |= {} if only is None else {name: str(only)}
        return found

    def labels(self) -> dict[str, list[str]]:
        """The columns that may tell runs apart, with the text of each row: several words, or several seeds."""
        return {name: self._texts(name) for name in self if self._may_tell_runs_apart(name)}

    def _may_tell_runs_apart(self, name: str) -> bool:
        is_of_runs = re.split(r"[/.]", name)[-1].casefold() in OF_RUNS
        words: set[str] = set()
        for value in self._different(name):
            words.add(word := "" if value is None else str(value))
            if len(words) > self._size / 2 + 1 or not (is_of_runs or as_number(word) is None):
                return False
        return 1 < len(words - {""}) <= self._size / 2

    def _texts(self, name: str) -> list[str]:
        texts = [""] * self._size
        for chunk, column in self._of(name):
            at = range(chunk.size) if column.rows is None else column.rows.tolist()
            for row, value in zip(at, column.values, strict=True):
                texts[chunk.begin + row] = "" if value is None else str(value)
        return texts

    def _of(self, name: str) -> Iterator[tuple[_Chunk, _Column]]:
        self._pack()
        return ((chunk, chunk.columns[name]) for chunk in self._chunks if name in chunk.columns)

    def _different(self, name: str) -> Iterator[Any]:
        return (value for _, column in self._of(name) for value in column.values.different())

    def rows_of_columns(self) -> list[np.ndarray]:
        """For each set of columns that are logged together, True for the rows with a value of them."""
        found: dict[bytes, np.ndarray] = {}
        num_rows: dict[bytes, int] = {}
        for name in self:
            has_value = np.zeros(self._size, dtype=bool)
            for chunk, column in self._of(name):
                here = has_value[chunk.begin : chunk.begin + chunk.size]
                here[slice(None) if column.rows is None else column.rows] = column.values.present(has_no_value)
            key = hashlib.sha256(np.packbits(has_value).tobytes()).digest()
            found.setdefault(key, has_value)
            num_rows[key] = int(has_value.sum())
            if len(found) > MOST_SETS:
                del found[min(found, key=num_rows.__getitem__)]
        return [*found.values()]

    def clock(self) -> np.ndarray | None:
        """The time of each row in seconds since 1970; None if no column has it for all rows."""
        for name in self:
            if re.sub("[ _-]", "", re.split(r"[/.]", name)[-1]).casefold() in CLOCKS:
                found = np.full(self._size, math.nan)
                for chunk, column in self._of(name):
                    here = found[chunk.begin : chunk.begin + chunk.size]
                    here[slice(None) if column.rows is None else column.rows] = column.values.numbers(time_of)[0]
                if (found >= LEAST_TIME).all():
                    return found
        return None

    def _made(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        found, nans = np.full(self._size, math.nan), [np.zeros(0, dtype=int)]
        for chunk, column in self._of(name):
            try:
                numbers, is_nan = column.values.numbers(number_of)
            except NoNumber as error:
                raise self._text_error(name, error.value) from None
            here = found[chunk.begin : chunk.begin + chunk.size]
            here[slice(None) if column.rows is None else column.rows] = numbers
            at = np.flatnonzero(is_nan)
            nans.append(chunk.begin + (at if column.rows is None else column.rows[at].astype(int)))
        return found, np.concatenate(nans)

    def _text_error(self, name: str, value: Any) -> AblationsError:
        where = next(where for where, row in self.rows if row.get(name) == value)
        if isinstance(value, TwoValues):
            return AblationsError(
                f"{self.place}: column {name!r} has two values in {where}, {value[:40]}; log each under its own name"
            )
        return AblationsError(
            f"{self.place}: column {name!r} holds text, {str(value)[:40]!r} in {where}; use a column of numbers"
            f"{number_advice(str(value))}"
        )

    def _pack(self) -> None:
        """Keep the rows that were added last by column."""
        if not self._new:
            return
        of_names: dict[tuple[str, ...], list[int]] = {}
        for number, (_, row) in enumerate(self._new):
            of_names.setdefault((*row,), []).append(number)
        parts: dict[str, list[tuple[list[int], Sequence[Any]]]] = {}
        for names, numbers in of_names.items():
            values = zip(*(self._new[number][1].values() for number in numbers), strict=True)
            for name, column in zip(names, values, strict=True):
                parts.setdefault(name, []).append((numbers, column))
        columns = {}
        for name, found in parts.items():
            at = [number for numbers, _ in found for number in numbers]
            values = [value for _, column in found for value in column]
            if len(found) > 1:
                order = sorted(range(len(at)), key=at.__getitem__)
                at, values = [at[one] for one in order], [values[one] for one in order]
            is_full = len(at) == len(self._new)
            columns[name] = _Column(rows=None if is_full else np.array(at, dtype=np.uint16), values=pack(values))
        self._append([where for where, _ in self._new], columns)
        self._new, self._new_values = [], 0

    def _append(self, places: Sequence[str], columns: Mapping[str, _Column]) -> None:
        begin = self._chunks[-1].begin + self._chunks[-1].size if self._chunks else 0
        self._names.update(dict.fromkeys(columns))
        self._chunks.append(_Chunk(begin=begin, size=len(places), places=pack(places), columns=columns))


def log_of_rows(
    rows: Iterable[tuple[str, Row]],
    *,
    name: str,
    place: str,
    steps: Sequence[str],
    config: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
) -> Log:
    """A log of rows, each with its place, such as "line 7"; without a config, constant columns take its place.

    `notes` are read after the rows.
    """
    columns = RowColumns(place)
    for where, row in rows:
        columns.add(where, row)
    return log_of_columns(columns, name=name, steps=steps, config=config, notes=notes)


def log_of_columns(
    columns: RowColumns,
    *,
    name: str,
    steps: Sequence[str],
    config: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
    own: Mapping[str, str] | None = None,
    without: str = "no rows",
    written: tuple[float, float] | None = None,
    begins: Sequence[int] = (),
    restarts: Sequence[tuple[int, np.ndarray]] = (),
) -> Log:
    """A log of columns; the arguments are the same as for `log_of_rows`."""
    if not columns.num_rows:
        raise Place(source=columns.place).error(without, "let the trainer log at least one step first")
    return Log(
        name=name,
        place=columns.place,
        columns=columns,
        steps=steps,
        config={**(columns.config() if config is None else config), **(own or {})},
        nan_rows=columns.nan_rows,
        labels=columns.labels,
        rows_of_columns=columns.rows_of_columns,
        clock=columns.clock,
        begins=(*begins,),
        restarts=(*restarts,),
        notes=(*notes,),
        written=written,
    )
