"""Publications of weights to be evaluated, which stay until they are deleted by number.

    evaluations/
      12/
        0-of-2.safetensors    as in `scalerl.weights.folder`
        0-of-2.json

A checkpoint may refer to them, so files are synced, and a resumed run does not delete them.
"""

import shutil
from collections.abc import Container
from pathlib import Path

from scalerl.durable import write_atomically
from scalerl.weights.folder import FolderStore
from scalerl.weights.hugging_face import Weights
from scalerl.weights.manifest import forms_of


class KeptStore(FolderStore):
    """Publications of one model's weights, in a folder that the store owns."""

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
        """Write a file atomically and durably."""
        write_atomically(path, content)
