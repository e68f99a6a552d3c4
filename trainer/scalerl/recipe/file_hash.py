"""Hashes of the content of a file or folder and of a program's code, so that changed content makes new runs."""

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from scalerl.durable import file_sha256

COMMIT, CHANGES = "commit", "uncommitted"


def content_sha256(path: Path, setting: str) -> str:
    """SHA-256 of a file, or of the names and hashes of a folder's files; `setting` names it in an error."""
    try:
        return _of_folder(path) if path.is_dir() else file_sha256(path)
    except FileNotFoundError:
        raise ValueError(f"{setting}: no file or folder {path}; a relative path starts at the current folder") from None
    except OSError as error:
        raise ValueError(f"{setting}: cannot read {path} ({error.strerror}); name a readable file") from None


def _of_folder(path: Path) -> str:
    # `datasets` caches files beside its data; they are not content.
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.name.startswith("cache-")]
    if not files:
        raise ValueError(f"{path}: empty folder; name a folder saved by `datasets`")
    lines = [f"{file.relative_to(path).as_posix()} {content_sha256(file, str(file))}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


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
