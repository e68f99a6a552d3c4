"""Which code trains a run: asked inside the job, because a job runs the source as it is when it starts."""

import os
import subprocess
from importlib.metadata import version
from pathlib import Path

VERSION_FILE = "CODE_VERSION"
"""Stands beside the packages in a snapshot of them."""


def code_version() -> str:
    """Commit of the source tree that this file belongs to, `+dirty` when edited since; else the package's version.

    A snapshot has the version of the source it was taken from.
    """
    here = Path(__file__).resolve()
    if (written := here.parents[2] / VERSION_FILE).exists():
        return written.read_text().strip()
    try:
        # A package installed inside somebody's repository is not part of it.
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
