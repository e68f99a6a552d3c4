"""A copy of the code that trains a run, for jobs on other machines.

    <home>/snapshots/<hash>/ablations/...   scalerl/...   CODE_VERSION

The copy is taken once at submission, so that later edits do not affect waiting jobs. The hash covers the files, so
submissions of the same code share one copy.
"""

import hashlib
import shutil
from pathlib import Path

import scalerl
from ablations.home.home import Home
from ablations.pools.code_version import VERSION_FILE, code_version
from scalerl.model.kernels.kept_code import DIGEST, FOLDER_NAME
from scalerl.run.run_folder import replace_folder

PACKAGES = {"ablations": Path(__file__).parents[1], "scalerl": Path(scalerl.__path__[0])}

BEING_WRITTEN = ("*.pyc*", "*.tmp.*", "*.lock")
"""Files that Python and numba make, and remove again while they write."""


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
                shutil.copytree(root, partial / name, ignore=_left_out)
            (partial / VERSION_FILE).write_text(code_version())
    return folder


def _left_out(folder: str, names: list[str]) -> set[str]:
    """What is being written, and machine code of other sources; that of these sources saves a job to compile."""
    others = {name for name in names if FOLDER_NAME.fullmatch(name) and name != DIGEST}
    return shutil.ignore_patterns(*BEING_WRITTEN)(folder, names) | others
