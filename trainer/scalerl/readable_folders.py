"""The folders from which a process that works for an agent may read input; without the variable, everything is
readable.

Messages about a file quote it, so a file that the agent may not read is refused before it is opened.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

READ_FROM = "ABLATIONS_READ_FROM"
"""Variable with the folders, separated as in PATH."""
NOT_FOR_AGENTS = "outside the folders that this server may read"


def is_readable(path: Path, folders: Iterable[str]) -> bool:
    """True if the file, wherever links lead, lies in one of the folders."""
    place = path.resolve()
    return any(place.is_relative_to(Path(folder).resolve()) for folder in folders)


def refuse_unreadable(path: Path) -> None:
    """Raise PermissionError for a file outside the folders of READ_FROM, if the variable is set."""
    folders = os.environ.get(READ_FROM)
    if folders and not is_readable(path, folders.split(os.pathsep)):
        raise PermissionError(errno.EACCES, NOT_FOR_AGENTS, str(path))
