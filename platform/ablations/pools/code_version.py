"""Which code trains a run. The job itself asks, because it runs the source as it is when the job starts."""

import os
import subprocess
from importlib.metadata import version
from pathlib import Path

VERSION_FILE = "CODE_VERSION"
"""In a snapshot, the file beside the packages that names their version."""


def code_version() -> str:
    """The commit of the source tree that has this file, with `+dirty` if it was edited; else the package's version.

    A snapshot has the version of the source that it was taken from.
    """
    here = Path(__file__).resolve()
    if (written := here.parents[2] / VERSION_FILE).exists():
        return written.read_text().strip()
    try:
        # A package may be installed inside a repository that it is not part of.
        _git(here.parent, "ls-files", "--error-unmatch", here.name)
        commit = _git(here.parent, "rev-parse", "--short=10", "HEAD")
        edited = _git(here.parents[3], "status", "--porcelain", "--", "platform", "trainer")
    except (OSError, subprocess.CalledProcessError):
        return version("ablations")
    return commit + ("+dirty" if edited else "")


def _git(folder: Path, *arguments: str) -> str:
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()
