"""Offline runs of W&B: the file `run-ID.wandb` of a folder `offline-run-DATE-ID`.

The file begins with ":W&B" and three bytes of version. Records are in blocks of 32 KiB, as in the log of LevelDB: each
part has a checksum (4 bytes, CRC-32 of what follows the length), a length (2) and a kind (1): whole, first, middle or
last.
"""

import json
import zlib
from pathlib import Path
from typing import Any

from ablations.errors import Place
from ablations.logs.log import HALF_WRITTEN, Log, content_of, extra, messages_in
from ablations.logs.rows import flat, log_of_rows

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
    content = content_of(path)
    if not content.startswith(BEGINNING):
        raise Place(source=str(path)).error("not a W&B file", "name the folder of an offline run")
    read = messages.Record.FromString
    found, is_whole = messages_in(path, lambda: split_blocks(content), read, reads=reads)
    rows: list[tuple[str, dict[str, Any]]] = []
    config: dict[str, str] = {}
    for number, message in enumerate(found, start=1):
        kind = message.WhichOneof("record_type")
        if kind == "history":
            row = {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in message.history.item}
            rows.append((f"record {number}", {"_step": message.history.step.num, **row}))
        elif kind == "run":
            name = message.run.display_name or name
            group = {"group": message.run.run_group} if message.run.run_group else {}
            config |= group | _config(message.run.config.update)
        elif kind == "config":
            config |= _config(message.config.update)
    notes = () if is_whole else (HALF_WRITTEN,)
    return log_of_rows(
        rows, name=name, place=str(path), steps=("_step",), config=config, notes=notes, without="no history"
    )


def split_blocks(content: bytes) -> tuple[list[bytes], bool]:
    """The whole records of a file of W&B, and whether the last one is whole; ValueError if a part is damaged."""
    found, parts, at = [], b"", PREFIX_BYTES
    while at < len(content):
        left = BYTES_OF_A_BLOCK - at % BYTES_OF_A_BLOCK
        if left < PART_PREFIX_BYTES:  # the end of a block is filled with zeros
            at += left
            continue
        length, kind = int.from_bytes(content[at + 4 : at + 6], "little"), content[at + 6 : at + 7]
        start = at + PART_PREFIX_BYTES
        if not kind or start + length > len(content):
            return found, False
        if zlib.crc32(content[at + 6 : start + length]) != int.from_bytes(content[at : at + 4], "little"):
            raise ValueError(f"record {len(found) + 1} is damaged (its checksum does not match)")
        parts = (
            content[start : start + length] if kind[0] in (WHOLE, FIRST) else parts + content[start : start + length]
        )
        if kind[0] in (WHOLE, LAST):
            found.append(parts)
        at = start + length
    return found, True


def _config(items: Any) -> dict[str, str]:
    values = {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items}
    return {key: str(value) for key, value in flat(values) if not key.startswith("_wandb")}
