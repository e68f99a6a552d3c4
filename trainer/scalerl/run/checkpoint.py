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

import safetensors.numpy
import safetensors.torch

from scalerl.rollout import Prompt
from scalerl.run.encoding import Encoded, decode, encode
from scalerl.run.run_folder import sync, write_atomically

FORM = 1
"""Changes whenever an older version of this file could not read the folder."""
MANIFEST = "manifest.json"


class CheckpointDamaged(ValueError):
    """A part of a checkpoint is missing, or is not what was written."""


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
        if path.name not in kept:
            path.unlink()


def read_checkpoint(folder: Path, prompts: Iterable[Prompt]) -> dict[str, Any]:
    """The state that was written; `prompts` are the task's training prompts, which it names.

    Raises CheckpointDamaged, naming the part, if one is not what the manifest says.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        form, parts = manifest["form"], manifest["parts"]
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, f"is not a manifest ({error})") from error
    if form != FORM:
        raise ValueError(f"{folder}: this checkpoint has form {form}, and this version reads form {FORM}")
    for part in parts.values():
        _check(folder / part["file"], part)
    encoded = Encoded(
        tree=json.loads((folder / parts["state"]["file"]).read_bytes()),
        tensors=safetensors.torch.load_file(folder / parts["tensors"]["file"]),
        arrays=safetensors.numpy.load_file(folder / parts["arrays"]["file"]),
    )
    return decode(encoded, prompts)


def damaged(path: Path, fault: str) -> CheckpointDamaged:
    """The error for a part with this fault."""
    return CheckpointDamaged(
        f"{path} {fault}; the run cannot resume from it. Restore the file, or delete {path.parent} to train the run "
        "again from its start"
    )


def _write_part(folder: Path, name: str, suffix: str, write: Callable[[Path], Any]) -> dict[str, Any]:
    """Write a part under a temporary name, make it durable, and name it by its content; returns its manifest entry."""
    temporary = folder / f".{name}.{os.getpid()}.tmp"
    try:
        write(temporary)
        sync(temporary)
        content, size = _sha256(temporary), temporary.stat().st_size
        path = folder / f"{name}-{content[:12]}{suffix}"
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return {"file": path.name, "bytes": size, "sha256": content}


def _check(path: Path, part: dict[str, Any]) -> None:
    """Raise CheckpointDamaged unless the file is the one that was written."""
    if not path.exists():
        raise damaged(path, "is missing")
    size = path.stat().st_size
    if size != part["bytes"]:
        raise damaged(path, f"has {size} bytes instead of {part['bytes']}")
    if _sha256(path) != part["sha256"]:
        raise damaged(path, "has changed since it was written: its SHA-256 is not the one in the manifest")


def _sha256(path: Path) -> str:
    """Of a file's content, in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
