"""Checkpoints: everything that decides a run's future, in parts, as of the last two saves.

    manifest.json                 format number, mark of the log, file, bytes and SHA-256 of each part, and the
                                  SHA-256 of all the above; written last
    previous.json                 the manifest of the previous checkpoint
    state-<hash>.json             plain values, and the places of tensors and arrays: `scalerl.run.encoding`
    tensors-<hash>.safetensors    weights (each once), optimiser moments, keys and values, random state
    arrays-<hash>.safetensors     tokens and log-probabilities of rollouts in flight
    rank-<r>-of-<n>-<hash>.safetensors   state of rank r of a sharded learner: `learner.saved_pieces`

Parts are named by their content, so new parts lie beside those of the last two checkpoints until the new manifest
replaces the old one atomically. Only then are parts deleted that neither manifest names. A crash at any instant leaves
a whole checkpoint. If a checkpoint is damaged, or the log no longer matches it, the previous one is used. Nothing is
unpickled.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors.numpy
import safetensors.torch

from scalerl.durable import Part, file_sha256, part_of_rank, sync_file, write_part
from scalerl.errors import CannotResume
from scalerl.rollout import Prompt
from scalerl.run.encoding import Encoded, decode, encode
from scalerl.run.run_folder import replace_folder, write_atomically
from scalerl.run.run_log import LogMark
from scalerl.run.sealed_json import read_sealed, seal

CHECKPOINT_FORM = 5
"""Checkpoint format, raised by each code change that cannot resume older checkpoints or trains on other data."""
MANIFEST, PREVIOUS = "manifest.json", "previous.json"
PARTS = ("state", "tensors", "arrays")
KeptWriter = Callable[[Path], Sequence[Part]]
"""Function that has the learner's ranks write their state into a folder and returns the manifest's entries."""
MOST_TIME_SAVING = 0.05
"""Largest share of a run's time spent on writing checkpoints; a large model's take many seconds each."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Contents of one checkpoint."""

    parts: Mapping[str, Part]
    """Parts by name; those of ranks are named `rank-0-of-2`."""
    log: LogMark
    """Mark of the log at the time of the checkpoint."""

    def to_json(self) -> bytes:
        """The content of manifest.json."""
        return seal({"form": CHECKPOINT_FORM, "log": asdict(self.log), "parts": dict(self.parts)}, indent=1)

    @property
    def files(self) -> set[str]:
        """Names of all part files."""
        return {part["file"] for part in self.parts.values()}

    @property
    def kept(self) -> list[str]:
        """Files of the learner's ranks, in order."""
        num_ranks = len(self.parts) - len(PARTS)
        return [self.parts[part_of_rank(rank, num_ranks)]["file"] for rank in range(num_ranks)]


@dataclass(frozen=True, kw_only=True)
class Found:
    """The newest whole checkpoint."""

    state: dict[str, Any]
    manifest: Manifest
    kept: tuple[Path, ...] = ()
    """Files written by the ranks of a sharded learner."""
    faults: tuple[str, ...] = ()
    """Reasons why a newer checkpoint is not used."""


class Damaged(CannotResume):
    """A file differs from what was written; the message names it."""


def write_checkpoint(
    folder: Path,
    state: dict[str, Any],
    log: LogMark,
    before: Manifest | None = None,
    write_kept: KeptWriter = lambda _: (),
) -> Manifest:
    """Write a checkpoint to `folder`, keep the whole one `before`, and delete all other files there.

    The ranks of a sharded learner write their files first, by `write_kept`: all exist before any manifest names one.
    """
    if not folder.exists():  # made in one step, so parts without a manifest mean damage, never a crash
        with replace_folder(folder) as partial:
            manifest = Manifest(parts=_write_parts(partial, state, write_kept(partial)), log=log)
            write_atomically(partial / MANIFEST, manifest.to_json())
        return manifest
    manifest = Manifest(parts=_write_parts(folder, state, write_kept(folder)), log=log)
    sync_file(folder)  # the parts' names reach the disk before the manifest's
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
    """The newest whole checkpoint in `folder` whose log still matches; None if there is no such folder.

    The checkpoint may refer to `prompts`, the task's training prompts. Raises CannotResume, naming the damage, if
    neither checkpoint is usable, or if one has another format, written by one of `code_versions`.
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
    """The error for a run that cannot resume from anything in `checkpoint`."""
    found = "; ".join(dict.fromkeys(faults))
    return CannotResume(f"{found}. The run cannot resume. Restore the damaged files, or {_anew(checkpoint)}")


def other_form(checkpoint: Path, form: object, code_versions: Sequence[str]) -> CannotResume:
    """The error for a checkpoint whose format this code cannot resume from."""
    written = f", written by code version {' or '.join(code_versions)}" if code_versions else ""
    return CannotResume(
        f"{checkpoint} has format {form}{written}; this version resumes only format {CHECKPOINT_FORM}. The run cannot "
        "resume, but it can still be compared. To train it further, use the code that wrote the checkpoint, or "
        f"{_anew(checkpoint)}"
    )


def _anew(checkpoint: Path) -> str:
    """Advice on retraining the run from its start."""
    return (
        f"retrain the run from its start: delete the checkpoint with `rm -r {checkpoint}`, then repeat the command "
        "(`platform sweep` or `platform train`)"
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
    """Write the state in parts; return the manifest's entries, including those of the learner's ranks."""
    encoded = encode(state, near=state.get("cluster", {}).get("learner", {}).get("policy"))
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
    """Read the parts of the state, after checking every part, including those of the ranks."""
    files = {name: _checked(folder, part) for name, part in manifest.parts.items()}
    return Encoded(
        tree=json.loads(files["state"].read_bytes()),
        tensors=safetensors.torch.load_file(files["tensors"]),
        arrays=safetensors.numpy.load_file(files["arrays"]),
    )


def _checked(folder: Path, part: Part) -> Path:
    """The file of a part; raises Damaged if it differs from what was written."""
    path = folder / part["file"]
    if not path.is_file():
        raise Damaged(f"{path} is missing")
    size = path.stat().st_size
    if size != part["bytes"]:
        raise Damaged(f"{path} has {size} bytes instead of {part['bytes']}")
    if file_sha256(path) != part["sha256"]:
        raise Damaged(f"{path} has changed since it was written: its SHA-256 is not the one in the manifest")
    return path


def time_between_saves(least_s: float, last_took_s: float) -> float:
    """Seconds from the end of a save to the next: `least_s`, or longer if saving would exceed its share.

    0 stays 0: such a recipe gets a checkpoint after every step.
    """
    return max(least_s, last_took_s * (1 / MOST_TIME_SAVING - 1)) if least_s > 0 else 0.0


class SaveInterval:
    """Times the saves of one process and decides when the next is due."""

    def __init__(self, least_s: float) -> None:
        self.least_s = least_s
        self.saved, self.took = time.monotonic(), 0.0

    @property
    def is_due(self) -> bool:
        """True if enough time has passed since the last save, or since the start."""
        return time.monotonic() - self.saved >= time_between_saves(self.least_s, self.took)

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Time the save in the block."""
        began = time.monotonic()
        yield
        self.saved = time.monotonic()
        self.took = self.saved - began
