"""The code that trains a run: its version, which the job itself reads, and a copy of it for jobs on other machines.

    <home>/snapshots/<hash>/ablations/...   scalerl/...   CODE_VERSION

The copy is taken once at submission, so that later edits do not affect waiting jobs. The hash covers the files, so
submissions of the same code share one copy.
"""

import hashlib
import os
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import scalerl
from ablations.home.home import Home
from scalerl.run.run_folder import replace_folder

PACKAGES = {"ablations": Path(__file__).parents[1], "scalerl": Path(scalerl.__path__[0])}
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


def take_snapshot(home: Home) -> Path:
    """The folder to put first in the PYTHONPATH of jobs; created unless one with the same code exists."""
    found = (path for root in PACKAGES.values() for path in root.rglob("*"))
    files = sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts)
    digest = hashlib.sha256()
    for path in files:
        digest.update(str(path).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    folder = home.path / "snapshots" / digest.hexdigest()[:16]
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with replace_folder(folder) as partial:
            for name, root in PACKAGES.items():
                shutil.copytree(root, partial / name, ignore=shutil.ignore_patterns("__pycache__"))
            (partial / VERSION_FILE).write_text(code_version())
    return folder
