"""The log of one run of any other trainer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ablations.errors import AblationsError, FileError, Place
from ablations.nearest_name import did_you_mean

HALF_WRITTEN = "The last row is incomplete and was skipped."
"""Note on a log that its trainer may still be writing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """Log of one run: `Log(name="dapo-s1", place="runs/dapo-s1.jsonl", columns=columns, steps=("step",))`."""

    name: str
    place: str
    columns: Mapping[str, np.ndarray]
    """Numbers in the order of logging, float64, all of one length; NaN if a row has no value."""
    steps: Sequence[str]
    """Columns in which this kind of file has the step; each row uses the first that it has."""
    config: Mapping[str, str] = field(default_factory=dict)
    nans: Callable[[str], int] = field(default=lambda _: 0)
    """Number of NaN values logged in a column; missing values do not count."""
    labels: Callable[[], Mapping[str, Sequence[str]]] = field(default=dict)
    """Columns of words that may tell runs apart, with the text of each row, "" if it has none."""
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
            f"{did_you_mean(names[0], sorted(log.columns), 'columns')}"
        )
    found = known[0].copy()
    for values in known[1:]:
        found = np.where(np.isnan(found), values, found)
    return found


def content_of(path: Path) -> bytes:
    """The bytes of a file; FileError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None


def messages_in(
    path: Path, split: Callable[[], tuple[list[bytes], bool]], decode: Callable[[bytes], Any], *, reads: str
) -> tuple[Iterator[Any], bool]:
    """The messages in a binary file, and True if the last one is whole; FileError if the file is damaged.

    `split` gives the records, or raises ValueError for one that is damaged; `reads` is that of `extra`.
    """
    damage = extra("google.protobuf.message", package="protobuf", reads=reads).DecodeError

    def error(why: object) -> FileError:
        return Place(source=str(path)).error(str(why), "copy the file again from its source")

    def decoded() -> Iterator[Any]:
        for number, record in enumerate(records, start=1):
            try:
                yield decode(record)
            except damage as fault:
                raise error(f"record {number} is damaged ({fault})") from None

    try:
        records, is_whole = split()
    except ValueError as fault:
        raise error(fault) from None
    return decoded(), is_whole


def unreadable(path: Path, error: OSError) -> FileError:
    return Place(source=str(path)).error(f"cannot be read ({error.strerror or error})", "name a readable file")


def extra(module: str, *, package: str, reads: str) -> Any:
    """The module; raises AblationsError with the pip command if its package is not installed, or does not start."""
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
