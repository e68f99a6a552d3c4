"""A checkpoint: a folder with everything that decides a run's future, in parts.

    manifest.json                 the form's number, and of each part its file, bytes and SHA-256; written last
    state-<hash>.json             plain values, and where tensors and arrays belong: `scalerl.run.encoding`
    tensors-<hash>.safetensors    weights, each once, the optimiser's moments, keys and values, random state
    arrays-<hash>.safetensors     tokens and log-probabilities of rollouts in flight

Parts are named by their content, so that those of the next checkpoint stand beside those of the last until its
manifest takes the place of the old one, in one step; only then are the old parts deleted. A crash at any instant leaves
one whole checkpoint. Nothing in it is unpickled.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import safetensors
import safetensors.numpy
import safetensors.torch

from scalerl.rollout import Prompt
from scalerl.run.encoding import Encoded, decode, encode
from scalerl.run.errors import CannotResume
from scalerl.run.run_folder import sync, write_atomically

FORM = 1
"""Changes whenever an older version of this file could not read the folder."""
MANIFEST = "manifest.json"
PARTS = ("state", "tensors", "arrays")


def checkpoint_exists(folder: Path) -> bool:
    """Whether the folder holds a whole checkpoint."""
    return (folder / MANIFEST).exists()


def write_checkpoint(folder: Path, state: dict[str, Any]) -> None:
    """Replace the checkpoint in `folder`."""
    if not folder.exists():
        folder.mkdir()
        sync(folder.parent)
    encoded = encode(state)
    text = json.dumps(encoded.tree, separators=(",", ":"))
    parts = {
        "state": _write_part(folder, "state", ".json", lambda path: path.write_text(text)),
        "tensors": _write_part(
            folder, "tensors", ".safetensors", lambda path: safetensors.torch.save_file(encoded.tensors, path)
        ),
        "arrays": _write_part(
            folder, "arrays", ".safetensors", lambda path: safetensors.numpy.save_file(encoded.arrays, path)
        ),
    }
    sync(folder)  # the parts' names are durable before the manifest's
    write_atomically(folder / MANIFEST, json.dumps({"form": FORM, "parts": parts}, indent=1).encode())
    kept = {MANIFEST, *(part["file"] for part in parts.values())}
    for path in folder.iterdir():
        if path.name not in kept and path.is_file():
            path.unlink()


def read_checkpoint(folder: Path, prompts: Iterable[Prompt]) -> dict[str, Any]:
    """The state that was written; `prompts` are the task's training prompts, which it names.

    Raises CannotResume, naming the part, if one is not what the manifest says, or if a newer version wrote it.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        if manifest["form"] != FORM:
            found = f"this checkpoint has form {manifest['form']}, and this version reads form {FORM}"
            raise CannotResume(f"{folder}: {found}; resume the run with the version that wrote it")
        files = {name: _checked(folder, manifest["parts"][name]) for name in PARTS}
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise damaged(path, f"is not a manifest ({error})", checkpoint=folder) from error
    encoded = Encoded(
        tree=json.loads(files["state"].read_bytes()),
        tensors=safetensors.torch.load_file(files["tensors"]),
        arrays=safetensors.numpy.load_file(files["arrays"]),
    )
    return decode(encoded, prompts)


def damaged(path: Path, fault: str, *, checkpoint: Path) -> CannotResume:
    """The error for a file of a checkpoint with this fault."""
    return CannotResume(
        f"{path} {fault}; the run cannot resume from it. Restore the file, or delete {checkpoint} to train the run "
        "again from its start"
    )


def _write_part(folder: Path, name: str, suffix: str, write: Callable[[Path], Any]) -> dict[str, Any]:
    """Write a part under a temporary name, make it durable, and name it by its content; returns its manifest entry."""
    temporary = folder / f".{name}.{os.getpid()}.tmp"
    try:
        temporary.touch()
        mode = temporary.stat().st_mode
        write(temporary)
        temporary.chmod(mode)  # safetensors lets only the owner read, and a home folder may be shared
        sync(temporary)
        content, size = _sha256(temporary), temporary.stat().st_size
        path = folder / f"{name}-{content[:12]}{suffix}"
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, safetensors.SafetensorError):  # its word for a full disk
            raise OSError(f"{folder / name}: {error}") from error
        raise
    return {"file": path.name, "bytes": size, "sha256": content}


def _checked(folder: Path, part: dict[str, Any]) -> Path:
    """The file of a part; CannotResume unless it is the one that was written."""
    path = folder / part["file"]
    if not path.exists():
        raise damaged(path, "is missing", checkpoint=folder)
    size = path.stat().st_size
    if size != part["bytes"]:
        raise damaged(path, f"has {size} bytes instead of {part['bytes']}", checkpoint=folder)
    if _sha256(path) != part["sha256"]:
        fault = "has changed since it was written: its SHA-256 is not the one in the manifest"
        raise damaged(path, fault, checkpoint=folder)
    return path


def _sha256(path: Path) -> str:
    """Of a file's content, in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
