"""Rows of a task file, each with its place for error messages: JSON lines, Parquet, or a folder of `datasets`.

TaskRow(where="gsm8k.jsonl:3", values={"question": "...", "answer": "... #### 42"})
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class TaskRow:
    """One problem as it is written."""

    where: str
    """File and line, as an error names it."""
    values: Mapping[str, Any]

    def value(self, setting: str, column: str | None, defaults: Sequence[str]) -> Any:
        """What stands in `column`, or in the first there is of `defaults`; ValueError where there is nothing."""
        names = [column] if column else [name for name in defaults if name in self.values]
        if not names or self.values.get(names[0]) is None:
            wanted = repr(column) if column else f"one of {', '.join(defaults)}"
            raise ValueError(
                f"{self.where}: no {setting} in column {wanted}; columns with a value are "
                f"{', '.join(name for name, value in self.values.items() if value is not None) or 'none'}. "
                f"Name the right one by `{setting}: COLUMN`"
            )
        return self.values[names[0]]

    def text(self, setting: str, column: str | None, defaults: Sequence[str]) -> str:
        """The same where it must be text; numbers are taken as they are written."""
        value = self.value(setting, column, defaults)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(f"{self.where}: {setting} is {value!r:.80}; text is needed")
        return str(value)

    def optional_text(self, setting: str, column: str | None, defaults: Sequence[str]) -> str | None:
        """The same, but None where no column is named and none of `defaults` has text."""
        if column is None and not any(isinstance(self.values.get(name), str) for name in defaults):
            return None
        return self.text(setting, column, [name for name in defaults if isinstance(self.values.get(name), str)])


def read_rows(path: Path, split: str | None) -> Iterator[TaskRow]:
    """The rows of a file or folder in order; ValueError names file and line of what cannot be read."""
    if path.is_dir():
        yield from _of_folder(path, split)
        return
    if split is not None:
        raise ValueError(
            f"{path}: split {split!r} has no effect on a file, only on a folder of `datasets`; leave it out"
        )
    if not path.is_file():
        raise ValueError(
            f"{path}: the file that the run was planned with is missing; restore it, or start the sweep again"
        )
    reader = READERS.get(path.suffix)
    if reader is None:
        raise ValueError(f"{path}: a task file ends in {' or '.join(READERS)}, or is a folder that `datasets` saved")
    yield from reader(path)


def _of_json_lines(path: Path) -> Iterator[TaskRow]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            where = f"{path.name}:{number}"
            try:
                values = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{where}: not JSON ({error}); every line is one JSON object") from None
            if not isinstance(values, dict):
                raise ValueError(f"{where}: found {values!r:.60}; every line is one JSON object with named columns")
            yield TaskRow(where=where, values=values)


def _of_parquet(path: Path) -> Iterator[TaskRow]:
    try:
        from pyarrow import ArrowException, parquet  # heavy, and an extra
    except ImportError:
        raise ValueError(
            f"{path}: reading Parquet needs pyarrow; install the extra: pip install 'ablations[data]'"
        ) from None
    try:
        batches = parquet.ParquetFile(path).iter_batches()
        rows = (values for batch in batches for values in batch.to_pylist())
        for number, values in enumerate(rows, start=1):
            yield TaskRow(where=f"{path.name}, row {number}", values=values)
    except ArrowException as error:
        raise ValueError(f"{path}: not a Parquet file that can be read ({error})") from None


def _of_folder(path: Path, split: str | None) -> Iterator[TaskRow]:
    try:
        import datasets  # takes seconds, and an extra
    except ImportError:
        raise ValueError(
            f"{path}: reading a `datasets` folder needs datasets; install the extra: pip install 'ablations[data]'"
        ) from None
    try:
        loaded = datasets.load_from_disk(str(path))
    except FileNotFoundError:
        raise ValueError(f"{path}: not a folder that `datasets` saved with save_to_disk; name one, or a file") from None
    if isinstance(loaded, datasets.DatasetDict):
        if split not in loaded:
            raise ValueError(f"{path}: it has no split {split!r}; its splits are {', '.join(map(str, loaded))}")
        loaded = loaded[split]
    elif split is not None:
        raise ValueError(f"{path}: split {split!r} has no effect on a folder with one data set; leave it out")
    for number, values in enumerate(loaded, start=1):
        assert isinstance(values, dict)
        yield TaskRow(where=f"{path.name}, row {number}", values=values)


READERS = {".jsonl": _of_json_lines, ".parquet": _of_parquet}
