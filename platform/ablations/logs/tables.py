"""Logs as tables: CSV and Parquet with one row per step, such as the history that W&B exports."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ablations.errors import Place
from ablations.logs.extras import extra
from ablations.logs.json_logs import STEPS
from ablations.logs.log import HALF_WRITTEN, Log, unreadable
from ablations.logs.rows import log_of_rows

TABLE_STEPS = (*STEPS, "Step")
"""Columns with the step; W&B's page writes `Step`."""


def read_csv_log(path: Path, name: str) -> Log:
    """The log of a CSV file with a header; FileError for a row that does not fit the header.

    A last row with too few fields is skipped with a note, since the trainer may still be writing it.
    """
    place = Place(source=str(path))
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, skipinitialspace=True)
            header = [column.strip() for column in next(reader, [])]
            lines = [(reader.line_num, fields) for fields in reader if fields]
    except OSError as error:
        raise unreadable(path, error) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise place.error(f"not CSV text ({error})", "save the file as UTF-8 CSV") from None
    if second := next((column for column in header if header.count(column) > 1), None):
        raise place.error(f"{header.count(second)} columns are called {second!r}", "keep one and rename the others")
    notes = ()
    if len(lines) > 1 and len(lines[-1][1]) < len(header):
        notes = (HALF_WRITTEN,)
        lines.pop()
    if not lines:
        raise place.error("no rows below the header", "the trainer must have logged a step")
    rows = []
    for line, fields in lines:
        if len(fields) != len(header):
            raise Place(source=str(path), line=line).error(
                f"{len(fields)} fields below a header of {len(header)}",
                "write numbers with a decimal point, not a comma, and names with a comma in double quotes",
            )
        rows.append((f"line {line}", {column: text.strip() for column, text in zip(header, fields, strict=True)}))
    return log_of_rows(rows, name=name, place=str(path), steps=TABLE_STEPS, notes=notes)


def read_parquet(path: Path, name: str) -> Log:
    """The log of a Parquet file; FileError if it is none, AblationsError without the library `pyarrow`."""
    parquet = extra("pyarrow.parquet", package="pyarrow", reads=f"{path}: a Parquet file")
    arrow = extra("pyarrow", package="pyarrow", reads=f"{path}: a Parquet file")
    try:
        found: list[Mapping[str, Any]] = parquet.read_table(path).to_pylist()
    except OSError as error:
        raise unreadable(path, error) from None
    except arrow.ArrowException as error:
        raise Place(source=str(path)).error(f"not Parquet ({error})", "write it with pandas or pyarrow") from None
    if not found:
        raise Place(source=str(path)).error("no rows", "the trainer must have logged a step")
    rows = [(f"row {number + 1}", row) for number, row in enumerate(found)]
    return log_of_rows(rows, name=name, place=str(path), steps=TABLE_STEPS)
