"""Checkpoints: a folder with everything that decides a run's future, in parts, at the last two moments it was saved.

    manifest.json                 the form's number, how the log was, of each part its file, bytes and SHA-256, and the
                                  SHA-256 of all this; written last
    previous.json                 the manifest of the checkpoint before
    state-<hash>.json             plain values, and where tensors and arrays belong: `scalerl.run.encoding`
    tensors-<hash>.safetensors    weights, each once, the optimiser's moments, keys and values, random state
    arrays-<hash>.safetensors     tokens and log-probabilities of rollouts in flight
    rank-<r>-of-<n>-<hash>.safetensors   what rank r of a sharded learner keeps, written by it: `scalerl.learner.pieces`

Parts are named by their content, so those of a new checkpoint stand beside those of the last two until its manifest
takes the place of the old one, in one step; only then are parts deleted that neither manifest names. A crash at any
instant leaves a whole checkpoint. If one is damaged, or the log is not what it was then, the one before is used.
Nothing in it is unpickled.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors.numpy
import safetensors.torch

from scalerl.durable import Part, file_sha256, part_of_rank, sync_file, write_part
from scalerl.errors import CannotResume
from scalerl.rollout import Prompt
from scalerl.run.encoding import Encoded, decode, encode
from scalerl.run.metrics import LogMark
from scalerl.run.run_folder import replace_folder, write_atomically
from scalerl.run.sealed_json import read_sealed, seal

CHECKPOINT_FORM = 4
"""Changes with every change of the code that could not resume from older checkpoints, or would train on other data."""
MANIFEST, PREVIOUS = "manifest.json", "previous.json"
PARTS = ("state", "tensors", "arrays")
KeptWriter = Callable[[Path], Sequence[Part]]
"""Has the learner's ranks write what they keep into a folder; what the manifest says of their files, in order."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What one checkpoint is made of."""

    parts: Mapping[str, Part]
    """By name, those of ranks as `rank-0-of-2`."""
    log: LogMark
    """How the log was."""

    def to_json(self) -> bytes:
        """The content of manifest.json."""
        return seal({"form": CHECKPOINT_FORM, "log": asdict(self.log), "parts": dict(self.parts)}, indent=1)

    @property
    def files(self) -> set[str]:
        """Names of its parts."""
        return {part["file"] for part in self.parts.values()}

    @property
    def kept(self) -> list[str]:
        """Files of the learner's ranks, in order."""
        num_ranks = len(self.parts) - len(PARTS)
        return [self.parts[part_of_rank(rank, num_ranks)]["file"] for rank in range(num_ranks)]


@dataclass(frozen=True, kw_only=True)
class Found:
    """The newest checkpoint that is whole."""

    state: dict[str, Any]
    manifest: Manifest
    kept: tuple[Path, ...] = ()
    """Files that the ranks of a sharded learner wrote."""
    faults: tuple[str, ...] = ()
    """Why a newer one is not used."""


class Damaged(CannotResume):
    """A file is not what was written; says which."""


def write_checkpoint(
    folder: Path,
    state: dict[str, Any],
    log: LogMark,
    before: Manifest | None = None,
    write_kept: KeptWriter = lambda _: (),
) -> Manifest:
    """Write a checkpoint to `folder` and keep the one `before`, which is whole; all other files there are deleted.

    A sharded learner's ranks write theirs first, where `write_kept` has them do so: all are there before any manifest
    names one.
    """
    if not folder.exists():  # made in one step, so that parts without a manifest are damage, never a crash
        with replace_folder(folder) as partial:
            manifest = Manifest(parts=_write_parts(partial, state, write_kept(partial)), log=log)
            write_atomically(partial / MANIFEST, manifest.to_json())
        return manifest
    manifest = Manifest(parts=_write_parts(folder, state, write_kept(folder)), log=log)
    sync_file(folder)  # the parts' names are durable before the manifest's
    if before is not None:
        write_atomically(folder / PREVIOUS, before.to_json())
    write_atomically(folder / MANIFEST, manifest.to_json())
    kept = {MANIFEST, *manifest.files}
    if before is not None:
        kept |= {PREVIOUS, *before.files}
    for path in folder.iterdir():
        if path.name not in kept and path.is_file():
            path.unlink()
    return manifest


def read_checkpoint(
    folder: Path, log: Path, prompts: Iterable[Prompt], code_versions: Sequence[str] = ()
) -> Found | None:
    """The newest checkpoint in `folder` that is whole, with the log as it was then; None if there is no such folder.

    `prompts` are the task's training prompts, which it names. Raises CannotResume with what is damaged if neither
    checkpoint can be used, or if one has another form, which one of `code_versions` wrote.
    """
    if not folder.exists():
        return None
    faults = []
    for name in (MANIFEST, PREVIOUS):
        if name == PREVIOUS and not (folder / name).exists():
            continue
        try:
            manifest = _read_manifest(folder / name, code_versions)
            encoded = _read_parts(folder, manifest)
            if fault := manifest.log.fault(log):
                raise Damaged(fault)
        except Damaged as fault:
            faults.append(str(fault))
            continue
        try:
            state = decode(encoded, prompts)
        except ValueError as error:
            raise CannotResume(
                f"{folder} was written with other data or by another version: {error}. Resume the run with the version "
                f"that wrote it, or {_anew(folder)}"
            ) from error
        kept = tuple((folder / file).resolve() for file in manifest.kept)
        return Found(state=state, manifest=manifest, kept=kept, faults=tuple(faults))
    raise damaged(faults, folder)


def damaged(faults: Iterable[str], checkpoint: Path) -> CannotResume:
    """The error when a run can resume from nothing that `checkpoint` holds."""
    found = "; ".join(dict.fromkeys(faults))
    return CannotResume(f"{found}. The run cannot resume. Restore what is damaged, or {_anew(checkpoint)}")


def other_form(checkpoint: Path, form: object, code_versions: Sequence[str]) -> CannotResume:
    """The error when a run's checkpoint has a form that this code does not resume from."""
    written = f", written by code version {' or '.join(code_versions)}" if code_versions else ""
    return CannotResume(
        f"{checkpoint} has form {form}{written}; this version resumes from form {CHECKPOINT_FORM} alone. The run "
        "cannot resume, but it can be compared as it is. To train on, use the code that wrote the checkpoint, or "
        f"{_anew(checkpoint)}"
    )


def _anew(checkpoint: Path) -> str:
    """How a run is trained again."""
    return (
        f"delete the checkpoint, `rm -r {checkpoint}`, and repeat the command (`platform sweep` or `platform train`): "
        "the run is then trained again from its start"
    )


def _read_manifest(path: Path, code_versions: Sequence[str]) -> Manifest:
    try:
        content, is_sealed = read_sealed(path.read_bytes())
        if content["form"] != CHECKPOINT_FORM:
            raise other_form(path.parent, content["form"], code_versions)
        if not is_sealed:
            raise Damaged(f"{path} is damaged (its SHA-256 is missing)")
        parts = content["parts"]
        num_ranks = len(parts) - len(PARTS)
        expected = {*PARTS, *(part_of_rank(rank, num_ranks) for rank in range(num_ranks))}
        if parts.keys() != expected or any(part.keys() != {"file", "bytes", "sha256"} for part in parts.values()):
            raise KeyError("parts")
        return Manifest(parts=parts, log=LogMark(**content["log"]))
    except FileNotFoundError:
        raise Damaged(f"{path} is missing") from None
    except CannotResume:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"{path} is damaged ({error})") from error


def _write_parts(folder: Path, state: dict[str, Any], kept: Sequence[Part]) -> dict[str, Part]:
    """Write the state in parts; returns the manifest's entries, those of the learner's ranks among them."""
    encoded = encode(state)
    text = json.dumps(encoded.tree, separators=(",", ":"))
    return {
        **{part_of_rank(rank, len(kept)): part for rank, part in enumerate(kept)},
        "state": write_part(folder, "state", ".json", lambda path: path.write_text(text)),
        "tensors": write_part(
            folder, "tensors", ".safetensors", lambda path: safetensors.torch.save_file(encoded.tensors, path)
        ),
        "arrays": write_part(
            folder, "arrays", ".safetensors", lambda path: safetensors.numpy.save_file(encoded.arrays, path)
        ),
    }


def _read_parts(folder: Path, manifest: Manifest) -> Encoded:
    """Those of the state; all of them are checked, the ranks' too."""
    files = {name: _checked(folder, part) for name, part in manifest.parts.items()}
    return Encoded(
        tree=json.loads(files["state"].read_bytes()),
        tensors=safetensors.torch.load_file(files["tensors"]),
        arrays=safetensors.numpy.load_file(files["arrays"]),
    )


def _checked(folder: Path, part: Part) -> Path:
    """The file of a part; Damaged unless it is the one that was written."""
    path = folder / part["file"]
    if not path.is_file():
        raise Damaged(f"{path} is missing")
    size = path.stat().st_size
    if size != part["bytes"]:
        raise Damaged(f"{path} has {size} bytes instead of {part['bytes']}")
    if file_sha256(path) != part["sha256"]:
        raise Damaged(f"{path} has changed since it was written: its SHA-256 is not the one in the manifest")
    return path
