"""The folders of kept machine code, `__pycache__/4f1c2d9b8a7e6d5c`: one for each state of the sources.

numba's cache of a function does not notice changes in the other files of this room, so that the sources of all of them
name the folder. A copy of the package, as jobs of a cluster have it, may use a copy of the folder.
"""

import hashlib
import os
import re
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(HERE.glob("*.py")))).hexdigest()[:16]
"""Name of the folder for the sources of this process."""
FOLDER_NAME = re.compile(r"[0-9a-f]{16}")
UNUSED_S = 7 * 86400.0
"""Time after which a folder that no process has begun to use is removed."""


@cache
def mark_used(folder: Path) -> None:
    """Give a folder the time of its use by this process, if it can be written."""
    with suppress(OSError):
        os.utime(folder)


def remove_unused(folder: Path, now: float) -> None:
    """Remove the folders beside `folder` that nobody has used for a week; another process may do so at once."""
    for other in folder.parent.iterdir():
        with suppress(FileNotFoundError):
            if FOLDER_NAME.fullmatch(other.name) and other != folder and now - other.stat().st_mtime > UNUSED_S:
                shutil.rmtree(other, ignore_errors=True)
