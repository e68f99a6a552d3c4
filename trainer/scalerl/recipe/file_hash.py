"""One hash of the content of a file or folder, independent of its place."""

import hashlib
from pathlib import Path

from scalerl.durable import file_sha256


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
