"""Logs as tables: CSV and Parquet with one row per step, such as the history that W&B exports."""

from pathlib import Path

from ablations.errors import Place
from ablations.fit.table_file import OpenTable, with_point
from ablations.logs.json_logs import STEPS
from ablations.logs.log import HALF_WRITTEN, Log, extra, unreadable
from ablations.logs.rows import ROWS_OF_A_CHUNK, RowColumns, log_of_columns, log_of_rows

TABLE_STEPS = (*STEPS, "Step")
"""Columns with the step; W&B's page writes `Step`."""


def read_csv_log(path: Path, name: str) -> Log:
    """The log of a CSV file with a header; FileError for a row that does not fit the header.

    A last row with too few fields is skipped with a note, since the trainer may still be writing it.
    """
    table, columns = OpenTable(path, is_growing=True), RowColumns(str(path))
    for line, fields in table:
        columns.add(f"line {line}", dict(zip(table.header, fields, strict=True)))
    if table.has_decimal_commas:
        points, columns = OpenTable(path, is_growing=True), RowColumns(str(path))
        for line, fields in points:
            columns.add(f"line {line}", dict(zip(table.header, map(with_point, fields), strict=True)))
    notes = (HALF_WRITTEN,) if table.is_cut else ()
    without = "no rows below the header"
    return log_of_columns(columns, name=name, steps=TABLE_STEPS, notes=notes, without=without)


def read_parquet(path: Path, name: str) -> Log:
    """The log of a Parquet file; FileError for any other file, AblationsError without the library `pyarrow`."""
    parquet = extra("pyarrow.parquet", package="pyarrow", reads=f"{path}: a Parquet file")
    arrow = extra("pyarrow", package="pyarrow", reads=f"{path}: a Parquet file")
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if second := next((name for name in names if names.count(name) > 1), None):
                raise Place(source=str(path)).error(
                    f"{names.count(second)} columns are called {second!r}", "keep one and rename the others"
                )
            batches = file.iter_batches(batch_size=ROWS_OF_A_CHUNK)
            rows = enumerate((row for batch in batches for row in batch.to_pylist()), start=1)
            places = ((f"row {number}", row) for number, row in rows)
            return log_of_rows(places, name=name, place=str(path), steps=TABLE_STEPS)
    except OSError as error:
        raise unreadable(path, error) from None
    except arrow.ArrowException as error:
        raise Place(source=str(path)).error(f"not Parquet ({error})", "write it with pandas or pyarrow") from None
