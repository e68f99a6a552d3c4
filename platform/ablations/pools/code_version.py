"""The version of the code that trains a run, which the job itself reads."""

import os
import subprocess
from importlib.metadata import version
from pathlib import Path

VERSION_FILE = "CODE_VERSION"
"""File in a snapshot, beside the packages, that names their version."""


def code_version() -> str:
    """The commit of the source tree around this file, with `+dirty` if edited; else the package's version.

    A snapshot has the version of the source from which it was taken.
    """
    here = Path(__file__).resolve()
    if (written := here.parents[2] / VERSION_FILE).exists():
        return written.read_text().strip()
    try:
        # A package may be installed inside an unrelated repository.
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
