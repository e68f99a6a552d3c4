"""Logs as tables: CSV and Parquet with one row per step, such as the history that W&B exports."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ablations.errors import Place
from ablations.fit.table_file import read_table
from ablations.logs.json_logs import STEPS
from ablations.logs.log import HALF_WRITTEN, Log, extra, unreadable
from ablations.logs.rows import log_of_rows

TABLE_STEPS = (*STEPS, "Step")
"""Columns with the step; W&B's page writes `Step`."""


def read_csv_log(path: Path, name: str) -> Log:
    """The log of a CSV file with a header; FileError for a row that does not fit the header.

    A last row with too few fields is skipped with a note, since the trainer may still be writing it.
    """
    table = read_table(path, is_growing=True)
    rows = [(f"line {line}", row) for line, row in table.rows]
    notes = (HALF_WRITTEN,) if table.is_cut else ()
    without = "no rows below the header"
    return log_of_rows(rows, name=name, place=str(path), steps=TABLE_STEPS, notes=notes, without=without)


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
    rows = [(f"row {number + 1}", row) for number, row in enumerate(found)]
    return log_of_rows(rows, name=name, place=str(path), steps=TABLE_STEPS)
