"""Rows of a task file with their places: JSON lines (also compressed), a JSON list, Parquet, or a `datasets` folder.

TaskRow(where="gsm8k.jsonl:3", values={"question": "...", "answer": "... #### 42"})

Where a column's name is asked for, a path names a part of a column: `prompt.0.content`, `reward_model.ground_truth`.
"""

import ast
import codecs
import gzip
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from scalerl.readable_folders import refuse_unreadable
from scalerl.tasks.arrow_values import plain_values
from scalerl.tasks.left_out import LeftOut
from scalerl.tasks.written_json import JSON, WrittenFloat, WrittenInteger, WrittenList, decoded

MOST_PARTS_NAMED = 8
"""Maximum number of parts of a column that an error names."""
ROWS_AT_A_TIME = 1000
"""Rows of a `datasets` folder that are read at a time."""


@dataclass(frozen=True, kw_only=True)
class TaskRow:
    """One row of a file."""

    where: str
    """File and line, as an error names it."""
    values: Mapping[str, Any]

    def value(self, setting: str, column: str | None, defaults: Sequence[str]) -> Any:
        """Value of `column`, or of the first of `defaults` that exists; raises ValueError if there is none."""
        if is_missing(found := self.at(self.named(column, defaults))):
            wanted = repr(column) if column else f"one of {', '.join(defaults)}"
            said = "" if found is None else f"found {found}; "
            columns = ", ".join(one for key, value in self.values.items() for one in _names(key, value)) or "none"
            raise ValueError(
                f"{self.where}: no {setting} in column {wanted}; {said}columns with a value are {columns}. "
                f"Name the right one by `{setting}: COLUMN`"
            )
        return found

    def named(self, column: str | None, defaults: Sequence[str]) -> str:
        """Name of the column that `value` reads; empty if no default exists."""
        return column or next((name for name in defaults if name in self.values), "")

    def at(self, name: str) -> Any:
        """Value of a column or of a part of one, also in a text that holds JSON; None if there is none."""
        if name in self.values:
            return self.values[name]
        value: Any = self.values
        for part in name.split("."):
            match unpacked(value):
                case Mapping() as found:
                    value = found.get(part)
                case list() as found if part.isdecimal() and int(part) < len(found):
                    value = found[int(part)]
                case _:
                    return None
        return value

    def text(self, setting: str, column: str | None, defaults: Sequence[str]) -> str:
        """Value as text, with numbers as written in the file; raises ValueError for other values."""
        value = self.value(setting, column, defaults)
        if fault := fault_of_text(value):
            advice = named_parts(value, f"{setting}: {self.named(column, defaults)}")
            raise ValueError(f"{self.where}: {setting} is {_shortened(value)}; {fault}{advice}")
        return as_text(value)

    def optional_text(self, setting: str, column: str | None, defaults: Sequence[str]) -> str | None:
        """Value as text; None if no column is named and none of `defaults` has text."""
        filled = [name for name in defaults if isinstance(text := self.values.get(name), str) and text.strip()]
        return None if column is None and not filled else self.text(setting, column, filled)


def is_missing(value: Any) -> bool:
    """True if a column has no value: null, or the NaN that pandas writes for null."""
    return value is None or (isinstance(value, float | Decimal) and math.isnan(value))


def as_text(value: Any) -> str:
    """A value without a `fault_of_text` as text, with numbers as written in the file."""
    return value.written if isinstance(value, WrittenFloat | WrittenInteger | WrittenList) else str(value)


def unpacked(value: Any) -> Any:
    """The list or object that a text holds as JSON, or as Python prints it; any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        for read in (JSON.decode, ast.literal_eval):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                found = read(value.strip())
                return found if isinstance(found, list | dict) else value
    return value


def _are_turns(value: Any) -> bool:
    """True for the messages of a conversation."""
    match value:
        case [{"role": _, "content": _} | {"from": _, "value": _}, *_]:
            return True
    return False


def named_parts(value: Any, named: str) -> str:
    """Advice to name a part of a value, if it has parts; `named` is the name of the value itself, as in `question:
    prompt`."""
    match unpacked(value):
        case list() as turns if _are_turns(turns):
            roles = [turn.get("role", turn.get("from")) if isinstance(turn, dict) else None for turn in turns]
            asked = [number for number, role in enumerate(roles) if role in ("user", "human")]
            last, part = max(asked, default=0), "content" if "content" in turns[0] else "value"
            others = f"; `template` may show others, as {{{named.partition(': ')[2]}.0.{part}}}" if last else ""
            return f", as `{named}.{last}.{part}`{others}"
        case [_]:
            return f"; its only item is `{named}.0`"
        case {**parts} if parts:
            return f"; its parts are {', '.join(f'`{named}.{name}`' for name in [*parts][:MOST_PARTS_NAMED])}"
    return ""


def _names(column: str, value: Any) -> list[str]:
    """A column as an error names it: by its parts if it has a few."""
    parts = value if isinstance(value, dict) and len(value) <= MOST_PARTS_NAMED else {"": value}
    return [f"{column}.{part}".rstrip(".") for part, one in parts.items() if not is_missing(one)]


def fault_of_text(value: Any) -> str:
    """Reason why a value cannot be used as text; empty if it can."""
    match value:
        case str() if not value.strip():
            return "expected text"
        case str() if not _is_utf8(value):
            return "the text contains half of a surrogate pair, which no file can store; write the whole character"
        case str() | list() if _are_turns(unpacked(value)):
            return "expected text, not chat messages; name the text of one"
        case bool():
            return "expected text"
        case float() | Decimal() if not math.isfinite(value) and not isinstance(value, WrittenFloat):
            return "expected text or a finite number"
        case float() if abs(value) >= 2**53 and not isinstance(value, WrittenFloat):
            return "a float of this size may have been rounded; store it as text or as an integer"
        case str() | int() | float() | Decimal() | WrittenList():
            return ""
    return "expected text"


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shortened(value: Any) -> str:
    return value.written[:80] if isinstance(value, WrittenInteger) else f"{value!r:.80}"


def read_task_rows(path: Path, split: str | None) -> Iterator[TaskRow | LeftOut]:
    """Rows of a file or folder in order, unreadable ones as LeftOut; raises ValueError if the file is unreadable."""
    if path.is_dir():
        yield from _of_folder(path, split)
        return
    if split is not None:
        raise ValueError(f"{path}: split {split!r} has no effect on a file, only on a folder of `datasets`; remove it")
    if not path.is_file():
        raise ValueError(f"{path}: the file that the run was planned with is missing; restore it, or restart the sweep")
    reader = next((reader for ending, reader in READERS.items() if path.name.endswith(ending)), None)
    if reader is None:
        *most, last = READERS
        raise ValueError(
            f"{path}: a task file must end in {', '.join(most)} or {last}, or be a folder saved by `datasets`"
        )
    refuse_unreadable(path)
    with path.open("rb") as file:
        begins = file.read(40).lower()
    for beginning, (ending, what) in OTHER_CONTENT.items():
        if begins.startswith(beginning) and not (ending and path.name.endswith(ending)):
            raise ValueError(f"{path}: {what}")
    yield from reader(path)


def _of_json_lines(path: Path) -> Iterator[TaskRow | LeftOut]:
    with path.open("rb") as file:
        yield from _of_lines(path, file)


def _of_compressed_lines(path: Path) -> Iterator[TaskRow | LeftOut]:
    try:
        with gzip.open(path) as file:
            yield from _of_lines(path, file)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: not a readable gzip file ({error}); it may be truncated") from None


def _of_lines(path: Path, lines: Iterable[bytes]) -> Iterator[TaskRow | LeftOut]:
    for number, line in enumerate(lines, start=1):
        content = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if number == 1 and content.lstrip().startswith((b"[{", b"[\n")):
            raise ValueError(f"{path}: begins with a list; a file with one list of objects must end in .json")
        if content.strip():
            yield json_row(f"{path.name}:{number}", content)


def _of_json_list(path: Path) -> Iterator[TaskRow | LeftOut]:
    try:
        rows = JSON.decode(path.read_bytes().removeprefix(codecs.BOM_UTF8).decode())
    except (ValueError, RecursionError) as error:
        hint = "; a file with one object per line must end in .jsonl" if "Extra data: line 2" in str(error) else ""
        raise ValueError(f"{path}: not JSON ({error}); expected one list of objects{hint}") from None
    if not isinstance(rows, list):
        raise ValueError(f"{path}: found {str(rows)[:60]!r}; expected one list of objects with named columns")
    for number, values in enumerate(rows, start=1):
        where = f"{path.name}, row {number}"
        if isinstance(values, dict):
            yield TaskRow(where=where, values=values)
        else:
            fault = f"found {values!r:.60}; expected one JSON object with named columns per row"
            yield LeftOut(where=where, reason="unreadable", detail=fault)


def json_row(where: str, line: bytes) -> TaskRow | LeftOut:
    """Row in a line of JSON, or LeftOut if the line is unreadable."""
    try:
        values = decoded(line.decode())
    except UnicodeDecodeError as error:
        fault = f"not UTF-8 (byte {line[error.start]:#04x} at position {error.start + 1}); save the file as UTF-8"
    except ValueError as error:
        fault = f"{error}; expected one JSON object per line"
    else:
        if isinstance(values, dict):
            return TaskRow(where=where, values=values)
        fault = f"found {values!r:.60}; expected one JSON object with named columns per line"
    return LeftOut(where=where, reason="unreadable", detail=fault)


def _of_parquet(path: Path) -> Iterator[TaskRow | LeftOut]:
    try:
        import pyarrow  # heavy, and an extra
        from pyarrow import parquet
    except ImportError:
        raise ValueError(
            f"{path}: reading Parquet needs pyarrow; install the extra: pip install 'ablations[data]'"
        ) from None
    try:
        file = parquet.ParquetFile(path)
        yield from _of_arrow(path, file.schema_arrow, file.iter_batches())
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path}: not a readable Parquet file ({error}); it may be truncated") from None


def _of_folder(path: Path, split: str | None) -> Iterator[TaskRow | LeftOut]:
    try:
        import datasets  # takes seconds, and an extra
    except ImportError:
        raise ValueError(
            f"{path}: reading a `datasets` folder needs datasets; install the extra: pip install 'ablations[data]'"
        ) from None
    try:
        loaded = datasets.load_from_disk(str(path))
    except FileNotFoundError:
        files = [str(file.relative_to(path)) for file in sorted(path.rglob("*")) if file.name.endswith(tuple(READERS))]
        it_has = f", or one of its files: {', '.join(files[:5])}" if files else ", or a file"
        raise ValueError(f"{path}: not a folder saved by `datasets` (save_to_disk); use one{it_has}") from None
    except Exception as error:  # readers raise many types for a damaged folder
        raise ValueError(f"{path}: not a readable `datasets` folder ({error}); save it again") from error
    if isinstance(loaded, datasets.DatasetDict):
        if split not in loaded:
            raise ValueError(f"{path}: no split {split!r}; its splits are {', '.join(map(str, loaded))}")
        loaded = loaded[split]
    elif split is not None:
        raise ValueError(f"{path}: split {split!r} has no effect on a folder with one data set; remove it")
    tables = loaded.with_format("arrow")
    yield from _of_arrow(path, tables.data.schema, tables.iter(ROWS_AT_A_TIME))


def _of_arrow(path: Path, schema: Any, batches: Iterable[Any]) -> Iterator[TaskRow | LeftOut]:
    plain = plain_values(schema)
    rows = (values for batch in batches for values in batch.to_pylist())
    for number, values in enumerate(rows, start=1):
        where = f"{path.name}, row {number}"
        try:
            yield TaskRow(where=where, values=plain(values))
        except ValueError as error:
            yield LeftOut(where=where, reason="unreadable", detail=str(error))


OTHER_CONTENT = {
    b"version https://git-lfs": ("", "a pointer of Git LFS in place of the file; fetch the file with `git lfs pull`"),
    b"<!doctype html": ("", "a web page; download the file that it shows"),
    b"\xff\xfe": ("", "UTF-16, not UTF-8; save the file as UTF-8"),
    b"\x1f\x8b": (".gz", "compressed by gzip; such a file must end in .jsonl.gz"),
    b"par1": (".parquet", "a Parquet file; its name must end in .parquet"),
}
"""What a file may be instead, by its first bytes in lower case, with the ending for such files and what to do."""
READERS = {
    ".jsonl": _of_json_lines,
    ".jsonl.gz": _of_compressed_lines,
    ".json": _of_json_list,
    ".parquet": _of_parquet,
}
