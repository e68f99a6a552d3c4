"""The log of one run of any other trainer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ablations.errors import AblationsError, FileError, Place
from ablations.nearest_name import did_you_mean, scores_first
from scalerl.readable_folders import refuse_unreadable

HALF_WRITTEN = "The last row is incomplete and was skipped."
"""Note on a log that its trainer may still be writing."""


class RowsOfLog(Mapping[str, np.ndarray]):
    """Some rows of the columns of a log."""

    def __init__(self, columns: Mapping[str, np.ndarray], rows: np.ndarray) -> None:
        self._columns, self._rows = columns, rows

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name][self._rows]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """Log of one run: `Log(name="dapo-s1", place="runs/dapo-s1.jsonl", columns=columns, steps=("step",))`."""

    name: str
    place: str
    columns: Mapping[str, np.ndarray]
    """Numbers in the order of logging, float64, all of one length; NaN if a row has no value."""
    steps: Sequence[str]
    """Columns that hold the step in this kind of file; each row uses the first that it has."""
    config: Mapping[str, str] = field(default_factory=dict)
    nan_rows: Callable[[str], np.ndarray] = field(default=lambda _: np.zeros(0, dtype=int))
    """The rows in which a column was logged as NaN; missing values do not count."""
    labels: Callable[[], Mapping[str, Sequence[str]]] = field(default=dict)
    """Columns of words that may tell runs apart, with the text of each row, "" if it has none."""
    rows_of_columns: Callable[[], Sequence[np.ndarray]] = field(default=tuple)
    """For each set of columns that are logged together, True for the rows with a value of them."""
    clock: Callable[[], np.ndarray | None] = field(default=lambda: None)
    """The time of each row in seconds since 1970, if the file has it."""
    begins: tuple[int, ...] = ()
    """The rows at which later parts of the run, written by other processes, begin."""
    restarts: tuple[tuple[int, np.ndarray], ...] = ()
    """For each restart marked in the file: its first row, and True for each row that it overwrites."""
    page_purges: bool = False
    """True if the page of the file's tracker hides what stands before a step that goes back, as TensorBoard's does."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """For each column with its own steps, the column that holds them."""
    rewound_to: float | None = None
    """The step of the previous part after which this part continues, if its writer recorded it."""
    notes: tuple[str, ...] = ()
    written: tuple[float, float] | None = None
    """Times at which the first and the last row were written, in seconds since 1970, if the file has them."""


def first_present(log: Log, names: Sequence[str]) -> np.ndarray:
    """The first of these columns that each row has; raises AblationsError if the log has none of them."""
    known = [log.columns[name] for name in names if name in log.columns]
    if not known:
        wanted = " or ".join(map(repr, names))
        raise AblationsError(
            f"{log.place}: no column {wanted}; name the column of steps with --step; "
            f"{did_you_mean(names[0], scores_first(log.columns), 'columns')}"
        )
    found = known[0].copy()
    for values in known[1:]:
        found = np.where(np.isnan(found), values, found)
    return found


def beginning_of(path: Path, size: int) -> bytes:
    """The first bytes of a file; FileError if it cannot be read."""
    try:
        refuse_unreadable(path)
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise unreadable(path, error) from None


class HalfWritten(AblationsError):
    """The last record of a file is incomplete."""


def messages_in(
    path: Path,
    split: Callable[[BinaryIO], Iterator[bytes]],
    decode: Callable[[bytes], Any],
    *,
    reads: str,
    notes: list[str],
) -> Iterator[Any]:
    """The messages in a binary file; FileError if the file cannot be read or is damaged.

    `split` gives the records and raises ValueError for one that is damaged, HalfWritten for a last one that is
    incomplete, which is then added to `notes`; `reads` is that of `extra`.
    """
    damage = extra("google.protobuf.message", package="protobuf", reads=reads).DecodeError
    number = 0
    try:
        with path.open("rb") as file:
            for record in split(file):
                number += 1
                yield decode(record)
    except HalfWritten:
        notes.append(HALF_WRITTEN)
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, damage) as fault:
        why = f"record {number} is damaged ({fault})" if isinstance(fault, damage) else str(fault)
        raise Place(source=str(path)).error(why, "copy the file again from its source") from None


def unreadable(path: Path, error: OSError) -> FileError:
    """The error to raise for a file that the operating system does not let us read."""
    return Place(source=str(path)).error(f"cannot be read ({error.strerror or error})", "name a readable file")


def extra(module: str, *, package: str, reads: str) -> Any:
    """The module; raises AblationsError with the pip command if its package is not installed or cannot be imported."""
    try:
        return import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name and module.startswith(error.name):
            why = "which is not installed"
        else:
            why = f"which cannot be imported ({error})"
        raise AblationsError(
            f"{reads} is read with the library {package}, {why}; run `pip install {package}`"
        ) from error
