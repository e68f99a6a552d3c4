"""Offline runs of W&B: the file `run-ID.wandb` of a folder `offline-run-DATE-ID`.

The file begins with ":W&B" and three bytes of version. Records are in blocks of 32 KiB, as in the log of LevelDB: each
part has a checksum (4 bytes, CRC-32 of what follows the length), a length (2) and a kind (1): whole, first, middle or
last.
"""

import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from ablations.errors import Place
from ablations.logs.log import HalfWritten, Log, beginning_of, extra, messages_in
from ablations.logs.row_values import flat, one_each
from ablations.logs.rows import RowColumns, log_of_columns
from ablations.logs.step_axes import axes_of

BEGINNING = b":W&B"
PREFIX_BYTES = 7
BYTES_OF_A_BLOCK = 1 << 15
PART_PREFIX_BYTES = 7
WHOLE, FIRST, LAST = 1, 2, 4


def read_wandb_file(path: Path, name: str) -> Log:
    """The log of an offline run, under its name in W&B if it has one.

    Raises FileError for any other file, AblationsError without the library `wandb`.
    """
    reads = f"{path}: an offline run of W&B"
    messages = extra("wandb.proto.wandb_internal_pb2", package="wandb", reads=reads)
    if beginning_of(path, len(BEGINNING)) != BEGINNING:
        raise Place(source=str(path)).error("not a W&B file", "name the folder of an offline run")
    read, notes = messages.Record.FromString, []
    rows = RowColumns(str(path))
    config: dict[str, str] = {}
    axes: list[tuple[str, str]] = []
    rewound_to: float | None = None
    for number, message in enumerate(messages_in(path, split_blocks, read, reads=reads, notes=notes), start=1):
        kind = message.WhichOneof("record_type")
        if kind == "history":
            items = (
                ("/".join(item.nested_key) or item.key, json.loads(item.value_json)) for item in message.history.item
            )
            rows.add(f"record {number}", one_each([("_step", message.history.step.num), *items]))
        elif kind == "run":
            name = message.run.display_name or name
            group = {"group": message.run.run_group} if message.run.run_group else {}
            config |= group | _config(message.run.config.update)
            if message.run.branch_point.run == message.run.run_id and message.run.branch_point.metric == "_step":
                rewound_to = message.run.branch_point.value
        elif kind == "config":
            config |= _config(message.config.update)
        elif kind == "metric" and message.metric.step_metric:
            axes.append((message.metric.glob_name or message.metric.name, message.metric.step_metric))
    log = log_of_columns(rows, name=name, steps=("_step",), config=config, notes=notes, without="no history")
    return replace(log, axes=axes_of(rows, axes), rewound_to=rewound_to)


def split_blocks(file: BinaryIO) -> Iterator[bytes]:
    """The records of a file of W&B; ValueError if a part is damaged, HalfWritten if the last one is incomplete."""
    number, parts, at = 1, b"", PREFIX_BYTES
    block = file.read(BYTES_OF_A_BLOCK)
    while block:
        # The end of a block is filled with zeros.
        while at + PART_PREFIX_BYTES <= BYTES_OF_A_BLOCK and at < len(block):
            length, kind = int.from_bytes(block[at + 4 : at + 6], "little"), block[at + 6 : at + 7]
            start = at + PART_PREFIX_BYTES
            end = start + length
            if end > len(block) and len(block) < BYTES_OF_A_BLOCK:
                raise HalfWritten
            if zlib.crc32(block[at + 6 : end]) != int.from_bytes(block[at : at + 4], "little"):
                raise ValueError(f"record {number} is damaged (its checksum does not match)")
            parts = block[start:end] if kind[0] in (WHOLE, FIRST) else parts + block[start:end]
            if kind[0] in (WHOLE, LAST):
                yield parts
                number += 1
            at = end
        block, at = file.read(BYTES_OF_A_BLOCK), 0


def _config(items: Any) -> dict[str, str]:
    values = {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items}
    return {key: str(value) for key, value in flat(values) if not key.startswith("_wandb")}
