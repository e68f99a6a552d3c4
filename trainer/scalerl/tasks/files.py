"""Rows of a task file, each with its place for error messages: JSON lines (also compressed), one JSON list, Parquet,
or a folder of `datasets`.

TaskRow(where="gsm8k.jsonl:3", values={"question": "...", "answer": "... #### 42"})
"""

import codecs
import gzip
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from scalerl.tasks.left_out import LeftOut
from scalerl.tasks.written_numbers import WrittenFloat, WrittenInteger, single, written_float, written_integer


@dataclass(frozen=True, kw_only=True)
class TaskRow:
    """One problem as it is written."""

    where: str
    """File and line, as an error names it."""
    values: Mapping[str, Any]

    def value(self, setting: str, column: str | None, defaults: Sequence[str]) -> Any:
        """What stands in `column`, or in the first there is of `defaults`; ValueError where there is nothing."""
        names = [column] if column else [name for name in defaults if name in self.values]
        if not names or is_missing(self.values.get(names[0])):
            wanted = repr(column) if column else f"one of {', '.join(defaults)}"
            found = f"it holds {self.values[names[0]]}; " if names and self.values.get(names[0]) is not None else ""
            columns = ", ".join(name for name, value in self.values.items() if not is_missing(value)) or "none"
            raise ValueError(
                f"{self.where}: no {setting} in column {wanted}; {found}columns with a value are {columns}. "
                f"Name the right one by `{setting}: COLUMN`"
            )
        return self.values[names[0]]

    def text(self, setting: str, column: str | None, defaults: Sequence[str]) -> str:
        """The same where it must be text; numbers are taken as they are written."""
        value = self.value(setting, column, defaults)
        fault = _fault_of_text(value)
        if fault:
            raise ValueError(f"{self.where}: {setting} is {_shortened(value)}; {fault}")
        return value.written if isinstance(value, WrittenFloat | WrittenInteger) else str(value)

    def optional_text(self, setting: str, column: str | None, defaults: Sequence[str]) -> str | None:
        """The same, but None where no column is named and none of `defaults` has text."""
        filled = [name for name in defaults if isinstance(text := self.values.get(name), str) and text.strip()]
        return None if column is None and not filled else self.text(setting, column, filled)


def is_missing(value: Any) -> bool:
    """Whether a column holds nothing: null, or the NaN that pandas writes for it."""
    return value is None or (isinstance(value, float | Decimal) and math.isnan(value))


def _fault_of_text(value: Any) -> str:
    """Why a value cannot be taken as text; empty if it can."""
    match value:
        case str() if not value.strip():
            return "text is needed"
        case str() if not _is_utf8(value):
            return "it holds half of a surrogate pair, which no file can hold; write the whole character"
        case bool():
            return "text is needed"
        case float() | Decimal() if not math.isfinite(value) and not isinstance(value, WrittenFloat):
            return "text or a finite number is needed"
        case float() if abs(value) >= 2**53 and not isinstance(value, WrittenFloat):
            return "a float of this size may have been rounded; store it as text or as an integer"
        case str() | int() | float() | Decimal():
            return ""
    return "text is needed"


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shortened(value: Any) -> str:
    return value.written[:80] if isinstance(value, WrittenInteger) else f"{value!r:.80}"


def read_task_rows(path: Path, split: str | None) -> Iterator[TaskRow | LeftOut]:
    """The rows of a file or folder in order, those that cannot be read as LeftOut; ValueError if the file cannot."""
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
    reader = next((reader for ending, reader in READERS.items() if path.name.endswith(ending)), None)
    if reader is None:
        *most, last = READERS
        raise ValueError(
            f"{path}: a task file ends in {', '.join(most)} or {last}, or is a folder that `datasets` saved"
        )
    yield from reader(path)


def _of_json_lines(path: Path) -> Iterator[TaskRow | LeftOut]:
    with path.open("rb") as file:
        yield from _of_lines(path, file)


def _of_compressed_lines(path: Path) -> Iterator[TaskRow | LeftOut]:
    try:
        with gzip.open(path) as file:
            yield from _of_lines(path, file)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: not a gzip file that can be read ({error}); it may be cut") from None


def _of_lines(path: Path, lines: Iterable[bytes]) -> Iterator[TaskRow | LeftOut]:
    for number, line in enumerate(lines, start=1):
        content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if content.strip():
            yield json_row(f"{path.name}:{number}", content)


def _of_json_list(path: Path) -> Iterator[TaskRow | LeftOut]:
    try:
        rows = _JSON.decode(path.read_bytes().removeprefix(codecs.BOM_UTF8).decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON ({error}); the file is one list of objects") from None
    if not isinstance(rows, list):
        raise ValueError(f"{path}: found {str(rows)[:60]!r}; the file is one list of objects with named columns")
    for number, values in enumerate(rows, start=1):
        where = f"{path.name}, row {number}"
        if isinstance(values, dict):
            yield TaskRow(where=where, values=values)
        else:
            fault = f"found {values!r:.60}; every row is one JSON object with named columns"
            yield LeftOut(where=where, reason="unreadable", detail=fault)


def json_row(where: str, line: bytes) -> TaskRow | LeftOut:
    """The row in a line of JSON."""
    try:
        values = _JSON.decode(line.decode())
    except UnicodeDecodeError as error:
        fault = f"not UTF-8 (byte {line[error.start]:#04x} at place {error.start + 1}); save the file as UTF-8"
    except RecursionError:
        fault = "not JSON that can be read: it is nested too deeply"
    except ValueError as error:
        fault = f"not JSON ({error}); every line is one JSON object"
    else:
        if isinstance(values, dict):
            return TaskRow(where=where, values=values)
        fault = f"found {values!r:.60}; every line is one JSON object with named columns"
    return LeftOut(where=where, reason="unreadable", detail=fault)


def _unlike(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are unlike; JSON itself would keep the last of two and say nothing."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return values


_JSON = json.JSONDecoder(object_pairs_hook=_unlike, parse_float=written_float, parse_int=written_integer)


def _of_parquet(path: Path) -> Iterator[TaskRow]:
    try:
        import pyarrow  # heavy, and an extra
        from pyarrow import parquet
    except ImportError:
        raise ValueError(
            f"{path}: reading Parquet needs pyarrow; install the extra: pip install 'ablations[data]'"
        ) from None
    try:
        file = parquet.ParquetFile(path)
        singles = [field.name for field in file.schema_arrow if field.type in (pyarrow.float16(), pyarrow.float32())]
        rows = (values for batch in file.iter_batches() for values in batch.to_pylist())
        for number, values in enumerate(rows, start=1):
            values |= {name: single(values[name]) for name in singles if values[name] is not None}
            yield TaskRow(where=f"{path.name}, row {number}", values=values)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path}: not a Parquet file that can be read ({error}); it may be cut") from None


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
    except Exception as error:  # a damaged folder raises whatever its readers do
        raise ValueError(f"{path}: not a `datasets` folder that can be read ({error}); save it again") from error
    if isinstance(loaded, datasets.DatasetDict):
        if split not in loaded:
            raise ValueError(f"{path}: it has no split {split!r}; its splits are {', '.join(map(str, loaded))}")
        loaded = loaded[split]
    elif split is not None:
        raise ValueError(f"{path}: split {split!r} has no effect on a folder with one data set; leave it out")
    for number, values in enumerate(loaded, start=1):
        assert isinstance(values, dict)
        yield TaskRow(where=f"{path.name}, row {number}", values=values)


READERS = {
    ".jsonl": _of_json_lines,
    ".jsonl.gz": _of_compressed_lines,
    ".json": _of_json_list,
    ".parquet": _of_parquet,
}
