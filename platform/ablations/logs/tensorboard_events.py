"""Event files of TensorBoard: the scalars of one run, from all event files of its folder.

A record of an event file is its length (8 bytes, little endian), a checksum of it (4), an `Event` and its checksum (4).
The last record of a running trainer may be half written.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ablations.errors import AblationsError
from ablations.logs.log import HALF_WRITTEN, Log, content_of, extra, messages_in
from ablations.logs.rows import log_of_rows

LENGTH_FIELD, CHECKSUM = 8, 4
MOST_CHECKED = 4096
"""Longest record whose checksum is compared, in bytes; longer ones are images and the like."""
PACKAGE = "tensorboard"


def read_event_files(paths: Sequence[Path], name: str) -> Log:
    """The log of the event files of one run, in the order of their names, which begin with the time of their start.

    Raises FileError for a damaged file, AblationsError without the library `tensorboard` or without a scalar.
    """
    folder = paths[0].parent
    reads = f"{folder}: a TensorBoard event file"
    events = extra("tensorboard.compat.proto.event_pb2", package=PACKAGE, reads=reads)
    arrays = extra("tensorboard.util.tensor_util", package=PACKAGE, reads=reads)
    checksum = extra("tensorboard.compat.tensorflow_stub.pywrap_tensorflow", package=PACKAGE, reads=reads).masked_crc32c
    decode = events.Event.FromString
    rows: list[tuple[str, dict[str, float]]] = []
    at_step: dict[int, dict[str, float]] = {}
    notes, times = (), []
    for path in paths:
        found, is_whole = messages_in(path, partial(split_records, content_of(path), checksum), decode, reads=reads)
        notes = notes if is_whole else (HALF_WRITTEN,)
        for event in found:
            for tag, value in _scalars(event, arrays):
                # One row a step, and a further one for a tag that comes again.
                if tag in (row := at_step.setdefault(event.step, {})):
                    row = at_step[event.step] = {}
                if not row:
                    row["step"] = event.step
                    rows.append((path.name, row))
                row[tag] = value
                times.append(event.wall_time)
    if not rows:
        raise AblationsError(f"{folder}: no scalar in the event files; the trainer must have logged a step")
    written = (min(times), max(times))
    return log_of_rows(rows, name=name, place=str(folder), steps=("step",), config={}, notes=notes, written=written)


def split_records(content: bytes, checksum: Callable[[bytes], int]) -> tuple[list[bytes], bool]:
    """The whole records of an event file, and True if nothing follows them; ValueError if one is damaged."""
    found, at = [], 0
    while at + LENGTH_FIELD + CHECKSUM <= len(content):
        start = at + LENGTH_FIELD + CHECKSUM
        if checksum(content[at : at + LENGTH_FIELD]) != int.from_bytes(content[at + LENGTH_FIELD : start], "little"):
            raise ValueError(f"record {len(found) + 1} is damaged (the checksum of its length does not match)")
        end = start + int.from_bytes(content[at : at + LENGTH_FIELD], "little")
        if end + CHECKSUM > len(content):
            break
        found.append(content[start:end])
        at = end + CHECKSUM
        if end - start <= MOST_CHECKED and checksum(found[-1]) != int.from_bytes(content[end:at], "little"):
            raise ValueError(f"record {len(found)} is damaged (its checksum does not match)")
    return found, at == len(content)


def _scalars(event: Any, arrays: Any) -> Iterator[tuple[str, float]]:
    for value in event.summary.value:
        kind = value.WhichOneof("value")
        if kind == "simple_value":
            yield value.tag, value.simple_value
        elif kind == "tensor" and value.metadata.plugin_data.plugin_name in ("", "scalars"):
            array = arrays.make_ndarray(value.tensor)
            if array.size == 1 and array.dtype.kind in "fiu":
                yield value.tag, float(array.item())
