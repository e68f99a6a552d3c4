"""Durable files: contents and names survive a power cut. This module does not import torch."""

import errno
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, TypeVar

import safetensors

OfWrite = TypeVar("OfWrite")
PAUSES_S = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Seconds before each new try of a write that failed, as on a file server that has dropped its connection."""
LASTING = frozenset(
    (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOENT,
        errno.EEXIST,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.ENAMETOOLONG,
    )
)
"""Errors that do not pass within seconds."""


class Part(TypedDict):
    """A manifest's entry for a file: `{"file": "state-3f0c9a1b2d4e.json", "bytes": 48211, "sha256": "..."}`."""

    file: str
    bytes: int
    sha256: str


def part_of_rank(rank: int, ranks: int) -> str:
    """Name of the part that one rank of a sharded learner writes: `rank-0-of-2`."""
    return f"rank-{rank}-of-{ranks}"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make an OSError raised in the block name this file if it names none, as for a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def persistently(write: Callable[[], OfWrite], path: Path) -> OfWrite:
    """Write to `path`, and try again a few times if that fails; the last OSError names the file."""
    for pause_s in PAUSES_S:
        try:
            return write()
        except OSError as error:
            if error.errno in LASTING:
                break
            time.sleep(pause_s)
    with naming(path):
        return write()


def error_text(error: BaseException) -> str:
    """An error with its kind; a file system error as `FILE: No space left on device`."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return f"{type(error).__name__}: {error}"


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
    """Replace `path` atomically, by a new file of this `mode`: temporary name, sync, rename, sync of the folder.

    A failed write is tried again; OSError names the file.
    """
    persistently(lambda: replace_once(path, content, mode=mode), path)


def replace_once(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Replace `path` as `write_atomically` does, with a single try."""
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
    """Write a part of a checkpoint to a temporary file, flush it to disk, and rename it after its content.

    A failed write is tried again; OSError names the file.
    """
    return persistently(lambda: _write_part_once(folder, name, suffix, write), folder / name)


def _write_part_once(folder: Path, name: str, suffix: str, write: Callable[[Path], Any]) -> Part:
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
            found = re.search(r"\(os error (\d+)\)", str(error))
            code = int(found[1]) if found else errno.EIO
            raise OSError(code, os.strerror(code) if found else str(error), str(folder / name)) from error
        raise
    return {"file": path.name, "bytes": size, "sha256": content}
