"""The files of one run: written so that a crash at any instant leaves the last good version of each.

`docs/formats.md` describes them. Nothing here imports torch, so the platform reads runs through this file.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from scalerl.recipe import ResolvedRecipe
from scalerl.run.metrics import FILE_NAME
from scalerl.run.status import RunStatus


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` in one step: temporary name, sync, rename, sync of the folder."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync(path.parent)


@contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """A new folder to fill; when the block ends its files are synced and it takes the place of `path`."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        for inside in (partial, *partial.rglob("*")):
            sync(inside)
        shutil.rmtree(path, ignore_errors=True)
        partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync(path.parent)


def remove_leftovers(folder: Path) -> None:
    """Delete what killed processes left half-written in `folder`; call it only where no other process writes."""
    for path in folder.glob(".*.tmp"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class RunFolder:
    """Paths and small files of one run."""

    path: Path

    @property
    def metrics(self) -> Path:
        """The run log."""
        return self.path / FILE_NAME

    @property
    def checkpoint(self) -> Path:
        """The folder of everything that decides the run's future: `scalerl.run.checkpoint`."""
        return self.path / "checkpoint"

    @property
    def old_checkpoint(self) -> Path:
        """The same in one file, as commit 5b233c1 left it."""
        return self.path / "checkpoint.pt"

    @property
    def model(self) -> Path:
        """The policy in Hugging Face format."""
        return self.path / "model"

    @property
    def lock(self) -> Path:
        """Held while a process trains the run."""
        return self.path / "lock"

    def log(self, attempt: int) -> Path:
        """What attempt `attempt` printed."""
        return self.path / "logs" / f"attempt-{attempt}.log"

    def create(self, recipe: ResolvedRecipe, seed: int) -> None:
        """Make the folder and its recipe.json unless they are there; a task file that has moved gets its new path.

        Whoever has this recipe has found the file there, so the one who trains the run will.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        stored = self.path / "recipe.json"
        content = json.dumps({"seed": seed, "recipe": recipe.model_dump(mode="json")}, indent=1).encode()
        if not stored.exists():
            write_atomically(stored, content)
        elif stored.read_bytes() != content and self.read_recipe()[0].canonical() == recipe.canonical():
            planned = stored.stat()
            write_atomically(stored, content)
            os.utime(stored, ns=(planned.st_atime_ns, planned.st_mtime_ns))  # its time says when the run was planned

    def read_recipe(self) -> tuple[ResolvedRecipe, int]:
        """The resolved recipe and the seed."""
        content = json.loads((self.path / "recipe.json").read_text())
        return ResolvedRecipe.model_validate(content["recipe"]), content["seed"]

    def read_status(self) -> RunStatus:
        """What the run says of itself; that of a run that has not started if status.json cannot be read."""
        try:
            return RunStatus.from_json((self.path / "status.json").read_bytes())
        except OSError:
            return RunStatus()

    def write_status(self, status: RunStatus) -> None:
        """Replace status.json."""
        write_atomically(self.path / "status.json", status.to_json())
