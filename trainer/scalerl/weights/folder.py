"""Publications as files in a folder, for every machine that mounts it.

    weights/
      41/
        0-of-2.safetensors    the tensors of rank 0, under Hugging Face's names
        0-of-2.json           its manifest: {"version": 41, "bytes": 912, "checksums": {"model.norm.weight": 2715}}
        1-of-2.safetensors
        1-of-2.json
      42/

A file is written under a temporary name and renamed, and a manifest follows its tensors. So a rank's share is complete
once its manifest exists, and the publication once all manifests do; no rank waits for another. Files are not synced:
after a power cut, the attempt that resumes publishes again.

Publications that wait to be evaluated lie in `evaluations/` and stay until they are deleted by number. A checkpoint may
refer to them, so their files are synced, and a resumed run does not delete them.
"""

import json
import os
import re
import shutil
from collections.abc import Container
from pathlib import Path

import safetensors
import safetensors.torch
from torch import Tensor

from scalerl.durable import write_atomically
from scalerl.plain_json import parsed_json
from scalerl.weights.hugging_face import Weights
from scalerl.weights.manifest import checksum, forms_of, refuse_damaged, refuse_other_version
from scalerl.weights.store import UnusablePublication, WeightStore

KEPT = 2
"""Number of publications kept."""
MANIFEST_NAME = re.compile(r"(\d+)-of-(\d+)\.json")


class FolderStore(WeightStore):
    """Publications of one model's weights, in a folder that the store owns and first empties.

    Pickled into a new process, it uses the same folder there.
    """

    def __init__(self, folder: Path, weights: Weights) -> None:
        self.folder = folder
        self._forms = forms_of(weights)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def publish(self, publication: int, version: int, weights: Weights, *, rank: int = 0, ranks: int = 1) -> None:
        """Write one rank's tensors, then its manifest; rank 0 deletes all but the last two publications."""
        place, name = self.folder / str(publication), f"{rank}-of-{ranks}"
        place.mkdir(parents=True, exist_ok=True)
        copies = {key: tensor.detach().cpu().contiguous().clone() for key, tensor in weights.items()}
        content = safetensors.torch.save(copies)
        self._replace(place / f"{name}.safetensors", content)
        manifest = {
            "version": version,
            "bytes": len(content),
            "checksums": {key: checksum(tensor) for key, tensor in copies.items()},
        }
        self._replace(place / f"{name}.json", json.dumps(manifest).encode())
        if rank == 0:
            self._delete_old(publication)

    def fetch(self, publication: int, version: int) -> Weights:
        place = self.folder / str(publication)
        weights: dict[str, Tensor] = {}
        checksums: dict[str, int] = {}
        try:
            for path in self._manifests(publication):
                manifest = parsed_json(path.read_bytes())
                refuse_other_version(publication, manifest["version"], version)
                tensors = path.with_suffix(".safetensors")
                if tensors.stat().st_size != manifest["bytes"]:
                    raise UnusablePublication(
                        f"{tensors} of publication {publication} has {tensors.stat().st_size} bytes instead of "
                        f"{manifest['bytes']}"
                    )
                weights |= safetensors.torch.load_file(tensors)
                checksums |= manifest["checksums"]
            refuse_damaged(publication, weights, self._forms, checksums)
        except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
            raise UnusablePublication(f"cannot read publication {publication} in {place}: {error!r}") from error
        return weights

    def has(self, publication: int) -> bool:
        """True if a share of the publication has been written."""
        return (self.folder / str(publication)).is_dir()

    def close(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _delete_old(self, newest: int) -> None:
        for old in self._numbers():
            if old <= newest - KEPT:
                shutil.rmtree(self.folder / str(old), ignore_errors=True)

    def _replace(self, path: Path, content: bytes) -> None:
        """Write a file atomically."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        temporary.write_bytes(content)
        temporary.replace(path)

    def _numbers(self) -> list[int]:
        return sorted(int(path.name) for path in self.folder.iterdir() if path.name.isdecimal())

    def _manifests(self, publication: int) -> list[Path]:
        """Manifests of all ranks; raises UnusablePublication if one is missing or the publication is gone."""
        place = self.folder / str(publication)
        if not place.is_dir():
            kept = ", ".join(map(str, self._numbers())) or "none"
            raise UnusablePublication(f"publication {publication} is not in {self.folder}, which has {kept}")
        found = {match[0]: int(match[2]) for path in place.iterdir() if (match := MANIFEST_NAME.fullmatch(path.name))}
        ranks = max(found.values(), default=1)
        expected = [f"{rank}-of-{ranks}.json" for rank in range(ranks)]
        if missing := sorted(set(expected) - found.keys()):
            raise UnusablePublication(f"publication {publication} is incomplete: {place} lacks {', '.join(missing)}")
        return [place / name for name in expected]


class KeptStore(FolderStore):
    """Publications to be evaluated, of one model's weights, in a folder that the store owns."""

    def __init__(self, folder: Path, weights: Weights) -> None:
        self.folder = folder
        self._forms = forms_of(weights)

    def begin(self, publication: int) -> None:
        """Make room for a publication, deleting what an earlier attempt left under its number."""
        shutil.rmtree(self.folder / str(publication), ignore_errors=True)
        (self.folder / str(publication)).mkdir(parents=True)

    def keep_only(self, publications: Container[int]) -> None:
        """Delete all other publications, and the folder if none is left."""
        if not self.folder.is_dir():
            return
        for number in self._numbers():
            if number not in publications:
                shutil.rmtree(self.folder / str(number), ignore_errors=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def close(self) -> None:
        """Do nothing: a resumed run reads the folder."""

    def _delete_old(self, newest: int) -> None:
        """Delete nothing."""

    def _replace(self, path: Path, content: bytes) -> None:
        write_atomically(path, content)
