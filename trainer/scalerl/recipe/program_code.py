"""Hashes of the code that a program runs, so that changed code makes new runs."""

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from scalerl.recipe.file_hash import content_sha256

COMMIT, CHANGES = "commit", "uncommitted"


def hashes_of_code(folder: Path, code: Literal["git"] | Sequence[str]) -> dict[str, str]:
    """SHA-256 of each named file or folder; for `git` the commit, and the hash of all uncommitted changes, if any.

    Uncommitted changes are those of tracked files, and untracked Python files. Raises ValueError if a file is missing,
    or if the folder is in no git repository.
    """
    if code != "git":
        return {name: content_sha256(folder / name, "code") for name in code}
    try:
        root = Path(_git(folder, "rev-parse", "--show-toplevel").decode().strip())
        found = {COMMIT: _git(folder, "rev-parse", "HEAD").decode().strip()}
        changes = hashlib.sha256(changed := _git(root, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-color"))
        new = _git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", "*.py").split(b"\0")
    except OSError as error:
        raise ValueError(f"code: git does not run ({error.strerror}); list the files instead") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise ValueError(f"code: {folder} has no git commit ({said}); list the files instead") from None
    for name in filter(None, new):
        changed += name
        changes.update(name + b"\0" + content_sha256(root / name.decode(), "code").encode())
    return found | ({CHANGES: changes.hexdigest()} if changed else {})


def _git(folder: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=True).stdout
