"""Results kept in files, each named after everything that determines it: read if the file exists, else made and
written.

If anything behind a result changes, its file has another name; an unreadable file is replaced. The folders may be
deleted at any time.
"""

import hashlib
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import TypeVar

from ablations.files.trees import NotATree, tree_bytes, tree_from_bytes
from scalerl.run.run_folder import write_atomically

SECONDS_OF_A_WRITE = 3600.0
"""A temporary file of at least this age in seconds is assumed to belong to a dead process."""
LOCKS = tuple(RLock() for _ in range(64))
"""Locks by the hash of a file: the first thread to ask makes the result, and the others wait. Two threads might
otherwise differ in the last bit, because BLAS splits sums by the number of free threads."""

Made = TypeVar("Made")


def read_kept_tree(path: Path, kind: type[Made]) -> Made | None:
    """The result in a file; None if there is none, it cannot be read, or it is of another kind."""
    with suppress(OSError, NotATree):
        return tree_from_bytes(path.read_bytes(), kind)
    return None


def kept_tree(
    path: Path,
    make: Callable[[], Made],
    kind: type[Made],
    *,
    most: int | None = None,
    is_final: Callable[[Made], bool] = lambda made: True,
) -> tuple[Made, str]:
    """The result in a file, or else a new one, which is written if it is final; and why it could not be written.

    The folder keeps its `most` newest results.
    """
    with LOCKS[hash(path) % len(LOCKS)]:
        if (kept := read_kept_tree(path, kind)) is not None:
            return kept, ""
        made = make()
        if not is_final(made):
            return made, ""
        try:
            content = tree_bytes(made)
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, content)
        except FileNotFoundError:  # the run or the sweep was deleted meanwhile
            return made, ""
        except OSError as error:
            return made, error.strerror or str(error)
        if most is not None:
            forget_old(path.parent, most=most)
        return made, ""


def forget_old(folder: Path, *, most: int) -> None:
    """Delete all but the `most` newest results of a folder, and files of interrupted writes."""
    with suppress(OSError):  # another process removes the same files
        kept = sorted(folder.glob("*.msgpack"), key=lambda path: path.stat().st_mtime_ns)
        now = time.time()
        torn = [path for path in folder.glob(".*.tmp") if now - path.stat().st_mtime > SECONDS_OF_A_WRITE]
        for path in (*kept[:-most], *torn):
            path.unlink(missing_ok=True)


def code_in(paths: Iterable[Path], versions: str = "") -> str:
    """SHA-256 of source files, which changes with the code, and of the versions of libraries."""
    digest = hashlib.sha256(versions.encode())
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()
