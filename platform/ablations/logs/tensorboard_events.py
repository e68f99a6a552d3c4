"""Event files of TensorBoard: the scalars of one run, from all event files of its folder.

A record of an event file is its length (8 bytes, little endian), a checksum of it (4), an `Event` and its checksum (4).
The last record of a running trainer may be half written.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count, islice
from pathlib import Path
from typing import Any, BinaryIO

from ablations.errors import AblationsError
from ablations.logs.log import HalfWritten, Log, extra, messages_in
from ablations.logs.rows import log_of_columns
from ablations.logs.step_columns import STEP_COLUMN, StepColumns

LENGTH_FIELD, CHECKSUM = 8, 4
MOST_CHECKED = 4096
"""Longest record whose checksum is verified, in bytes; longer ones hold images and the like."""
PACKAGE = "tensorboard"


@dataclass(kw_only=True)
class EventFile:
    """What is known about an event file: `EventFile(row=0)`."""

    row: int
    """The row of the log at which the file begins."""
    first: float = math.inf
    last: float = -math.inf
    """Times of the first and the last value."""
    is_marked: bool = False
    """True once a start marker has been read."""


def read_event_files(paths: Sequence[Path], name: str) -> Log:
    """The log of the event files of one run, event by event in the order of their times.

    The first file lies in the run's folder. Of files in folders below only the curves of `SummaryWriter.add_scalars`
    are read: `score_val` with values of `score` is the column `score/val`.

    Raises FileError for a damaged file, AblationsError without the library `tensorboard` or without a scalar.
    """
    folder = paths[0].parent
    reads = f"{folder}: a TensorBoard event file"
    protocol = extra("tensorboard.compat.proto.event_pb2", package=PACKAGE, reads=reads)
    arrays = extra("tensorboard.util.tensor_util", package=PACKAGE, reads=reads)
    checksum = extra("tensorboard.compat.tensorflow_stub.pywrap_tensorflow", package=PACKAGE, reads=reads).masked_crc32c
    columns, notes, files, marks = StepColumns(), list[str](), dict[Path, EventFile](), []

    def events_in(path: Path, notes: list[str]) -> Iterator[Any]:
        split = partial(split_records, checksum=checksum)
        return messages_in(path, split, protocol.Event.FromString, reads=reads, notes=notes)

    def is_of_run(path: Path) -> bool:
        subfolder = path.parent.relative_to(folder).as_posix()
        tags = (tag for event in events_in(path, []) for tag, _ in _scalars(event, arrays))
        return path.parent == folder or any(column_below(tag, subfolder) for tag in islice(tags, 1))

    paths = [*filter(is_of_run, paths)]
    begins = [
        (next(filter(math.isfinite, map(time_of_values, events_in(path, []))), -math.inf), path) for path in paths
    ]
    writing = paths[0].name  # whose rows the curves below the run's folder join
    for path, event in events_by_time(sorted(begins), lambda path: events_in(path, notes)):
        if path.parent != folder:
            for tag, value in _scalars(event, arrays):
                if column := column_below(tag, path.parent.relative_to(folder).as_posix()):
                    columns.log(writing, event.step, column, value)
            continue
        writing = path.name
        file = files.setdefault(path, EventFile(row=columns.num_rows))
        if event.session_log.status == protocol.SessionLog.START:
            # TensorFlow's supervisor may write the mark after the first values of its file.
            marks.append((columns.num_rows if file.is_marked else file.row, event.step))
            file.is_marked = True
        for tag, value in _scalars(event, arrays):
            columns.log(path.name, event.step, tag, value)
            file.first, file.last = min(file.first, event.wall_time), max(file.last, event.wall_time)
    if not columns.num_rows:
        raise AblationsError(f"{folder}: no scalar in the event files; let the trainer log at least one step first")
    with_values = [file for file in files.values() if file.last > -math.inf]
    later = [
        file.row for file in with_values if all(one.last <= file.first for one in with_values if one.row < file.row)
    ]
    restarts = [(row, columns.from_step(row, step)) for row, step in marks if row]
    log = log_of_columns(
        columns.columns(str(folder)),
        name=name,
        steps=(STEP_COLUMN,),
        config={},
        notes=dict.fromkeys(notes),
        written=(min(file.first for file in with_values), max(file.last for file in with_values)),
        begins=[row for row in later if row],
        restarts=restarts,
    )
    return replace(log, page_purges=True)


def column_below(tag: str, subfolder: str) -> str:
    """The column of a value in a folder below the run's; "" if `add_scalars` has not named the folder.

    torch 2.13 puts `val` of `acc/all` into `acc_all_val`, tensorboardX 2.6.4 into `acc/all/val`. Other folders below
    hold settings of `add_hparams`, or runs of their own.
    """
    for start in (f"{tag.replace('/', '_')}_", f"{tag}/"):
        if subfolder.startswith(start):
            return f"{tag}/{subfolder.removeprefix(start)}"
    return ""


def time_of_values(event: Any) -> float:
    """The time of an event with values; minus infinity for any other."""
    return event.wall_time if event.HasField("summary") else -math.inf


def events_by_time(
    begins: Sequence[tuple[float, Path]], events_in: Callable[[Path], Iterator[Any]]
) -> Iterator[tuple[Path, Any]]:
    """The events of all files in the order of their times; `begins` has the time of each file's first value, ascending.

    Events of one file stay in their order, and a file is open only while its events come.
    """
    waiting = deque(begins)
    coming: list[tuple[float, int, Path, Any, Iterator[Any]]] = []

    def push(time: float, number: int, path: Path, events: Iterator[Any]) -> None:
        if (event := next(events, None)) is not None:
            heappush(coming, (max(time, time_of_values(event)), number, path, event, events))

    while waiting or coming:
        if waiting and (not coming or waiting[0][0] < coming[0][0]):
            time, path = waiting.popleft()
            push(time, len(begins) - len(waiting), path, events_in(path))
            continue
        time, number, path, event, events = heappop(coming)
        yield path, event
        push(time, number, path, events)


def split_records(file: BinaryIO, *, checksum: Callable[[bytes], int]) -> Iterator[bytes]:
    """The records of an event file; ValueError if one is damaged, HalfWritten if the last one is incomplete."""
    for number in count(1):
        head = file.read(LENGTH_FIELD + CHECKSUM)
        if not head:
            return
        if len(head) < LENGTH_FIELD + CHECKSUM:
            raise HalfWritten
        if checksum(head[:LENGTH_FIELD]) != int.from_bytes(head[LENGTH_FIELD:], "little"):
            raise ValueError(f"record {number} is damaged (the checksum of its length does not match)")
        length = int.from_bytes(head[:LENGTH_FIELD], "little")
        record, tail = file.read(length), file.read(CHECKSUM)
        if len(tail) < CHECKSUM:
            raise HalfWritten
        if length <= MOST_CHECKED and checksum(record) != int.from_bytes(tail, "little"):
            raise ValueError(f"record {number} is damaged (its checksum does not match)")
        yield record


def _scalars(event: Any, arrays: Any) -> Iterator[tuple[str, float]]:
    for value in event.summary.value:
        kind = value.WhichOneof("value")
        if kind == "simple_value":
            yield value.tag, value.simple_value
        elif kind == "tensor" and value.metadata.plugin_data.plugin_name in ("", "scalars"):
            array = arrays.make_ndarray(value.tensor)
            if array.size == 1 and array.dtype.kind in "fiu":
                yield value.tag, float(array.item())
