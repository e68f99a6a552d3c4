"""Durable files: contents and names survive a power cut. This module does not import torch."""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import safetensors


class Part(TypedDict):
    """A manifest's entry for a file: `{"file": "state-3f0c9a1b2d4e.json", "bytes": 48211, "sha256": "..."}`."""

    file: str
    bytes: int
    sha256: str


def part_of_rank(rank: int, ranks: int) -> str:
    """Name of the part that one rank of a sharded learner writes: `rank-0-of-2`."""
    return f"rank-{rank}-of-{ranks}"


def sync_file(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Replace `path` atomically, by a new file of this `mode`: temporary name, sync, rename, sync of the folder."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)
        with open(temporary, "xb", opener=partial(os.open, mode=mode)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_file(path.parent)


def write_part(folder: Path, name: str, suffix: str, write: Callable[[Path], Any]) -> Part:
    """Write a part of a checkpoint to a temporary file, flush it to disk, and rename it after its content."""
    temporary = folder / f".{name}.{os.getpid()}.tmp"
    try:
        temporary.touch()
        mode = temporary.stat().st_mode
        write(temporary)
        temporary.chmod(mode)  # safetensors lets only the owner read, but a home folder may be shared
        sync_file(temporary)
        content, size = file_sha256(temporary), temporary.stat().st_size
        path = folder / f"{name}-{content[:12]}{suffix}"
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, safetensors.SafetensorError):  # how safetensors reports a full disk
            raise OSError(f"{folder / name}: {error}") from error
        raise
    return {"file": path.name, "bytes": size, "sha256": content}
