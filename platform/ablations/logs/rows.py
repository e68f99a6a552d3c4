"""Rows as trainers write them, made into the columns of a log."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ablations.logs.log import Log

NOT_FINITE = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
"""Texts by which programs write numbers that JSON lacks."""


def flat(row: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested mappings, with the names of all levels joined by a slash."""
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{name}/")
        else:
            yield f"{above}{name}", value


def as_number(value: Any) -> float | None:
    """A number as it was logged, also if JSON lacks it, such as "NaN"; None for anything else."""
    if isinstance(value, bool | int | float):
        return float(value)
    return NOT_FINITE.get(value.strip().lower()) if isinstance(value, str) else None


def log_of_rows(
    rows: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    name: str,
    place: str,
    steps: tuple[str, ...],
    config: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
) -> Log:
    """A log of rows, each with its place, such as "line 7"; without a config, columns that never change are it."""
    numbers: dict[str, list[tuple[int, float]]] = defaultdict(list)
    nans: dict[str, int] = defaultdict(int)
    texts: dict[str, str] = {}
    seen: dict[str, set[str]] = defaultdict(set)
    size = 0
    for index, (where, row) in enumerate(rows):
        size = index + 1
        for column, value in flat(row):
            if value is None or value == "":
                continue
            number = as_number(value)
            if number is None:
                if isinstance(value, str):
                    texts.setdefault(column, f"{value[:40]!r} in {where}")
            elif math.isnan(number):
                nans[column] += 1
            else:
                numbers[column].append((index, number))
            if config is None and isinstance(value, str | int | float) and len(seen[column]) < 2:
                seen[column].add(f"{value:g}" if isinstance(value, float) else str(value))
    columns = {}
    for column in {*numbers, *nans}:
        values = np.full(size, np.nan)
        if logged := numbers[column]:
            values[[index for index, _ in logged]] = [number for _, number in logged]
        columns[column] = values
    if config is None:
        config = {column: next(iter(values)) for column, values in seen.items() if len(values) == 1}
    return Log(name=name, place=place, columns=columns, steps=steps, config=config, nans=nans, texts=texts, notes=notes)
