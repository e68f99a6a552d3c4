"""The files of one run, written so that a crash at any instant leaves the last good version of each.

`docs/formats.md` describes them. This module does not import torch, so the platform reads runs through it.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from scalerl.credentials import values_without_secrets
from scalerl.durable import naming, replace_once, sync_file, write_atomically
from scalerl.errors import CannotResume
from scalerl.plain_json import parsed_json
from scalerl.run.run_log import LOG_FILE
from scalerl.run.status import RunStatus

if TYPE_CHECKING:
    from scalerl.recipe import ResolvedRecipe
    from scalerl.recipe.command import AnyRecipe

IDENTITY = re.compile("[0-9a-f]{12}")
"""Pattern of a run's id, which names its folder."""
WITHOUT_PASSWORDS = "without_passwords"
"""Key of a recipe.json whose passwords an export has hidden."""


@contextmanager
def replace_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder to fill; after the block its files are synced and the folder replaces `path`."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        for inside in (partial, *partial.rglob("*")):
            sync_file(inside)
        shutil.rmtree(path, ignore_errors=True)
        partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync_file(path.parent)


def remove_leftovers(folder: Path) -> None:
    """Delete half-written files of killed processes in `folder`; call this only if no other process writes there."""
    for path in folder.glob(".*.tmp"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def shared(content: Mapping[str, Any]) -> bytes:
    """A recipe.json without passwords; it says so, because its hash is no longer the run's id."""
    return json.dumps({**values_without_secrets(content), WITHOUT_PASSWORDS: True}, indent=1).encode()


def mode_for(content: Mapping[str, Any]) -> int:
    """The mode of a file with this content: only the owner may read one that holds a password."""
    return 0o666 if values_without_secrets(content) == content else 0o600


class Inside:
    """A path inside a run folder, as an attribute of the folder."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, folder: "RunFolder", kind: type) -> Path:
        return folder.path / self.name


@dataclass(frozen=True)
class RunFolder:
    """Paths and small files of one run."""

    path: Path

    metrics = Inside(LOG_FILE)
    """The run log."""
    rollouts = Inside("rollouts.jsonl")
    """Sample rollouts of each evaluation, for people to read: `scalerl.run.rollout_rows`."""
    checkpoint = Inside("checkpoint")
    """Folder of everything that decides the run's future: `scalerl.run.checkpoint`."""
    old_checkpoint = Inside("checkpoint.pt")
    """Pickled checkpoint of commit 5b233c1 and before; a run that has only this one cannot resume."""
    model = Inside("model")
    """The policy in Hugging Face format."""
    left_out = Inside("left_out.jsonl")
    """List of task-file rows that the run does not use; missing if it uses them all."""
    lock = Inside("lock")
    """Lock held while a process trains the run."""
    own = Inside("own")
    """Copies of the files of the user's own functions, from which the run trains."""
    weights = Inside("weights")
    """Weights in transit to other nodes, while a run over several nodes trains."""
    evaluations = Inside("evaluations")
    """Weights waiting for the evaluator, while a run that has one trains."""
    work = Inside("work")
    """Folder for the files of a user's own program, such as its checkpoints."""

    def log(self, attempt: int, *, node: int = 0) -> Path:
        """Output of attempt `attempt` on one node; the first node's log holds all that the run itself prints."""
        return self.path / "logs" / (f"attempt-{attempt}.node-{node}.log" if node else f"attempt-{attempt}.log")

    def create(self, recipe: "AnyRecipe", seed: int) -> None:
        """Create the folder and its recipe.json if missing; a task file that has moved gets its new path.

        The caller resolved this recipe from the file at its path, so the training process will find the file there too.
        CannotResume if recipe.json has been edited; OwnFailed if a file of the user's own functions has changed since
        the recipe was resolved.
        """
        from scalerl.recipe import ResolvedRecipe
        from scalerl.recipe.own_function import copy_files

        self.path.mkdir(parents=True, exist_ok=True)
        for own in recipe.own.values() if isinstance(recipe, ResolvedRecipe) else ():
            copy_files(own, self.own)
        stored, identity = self.path / "recipe.json", recipe.identity(seed)
        plain = {"id": identity, "seed": seed, "recipe": recipe.model_dump(mode="json")}
        content = json.dumps(plain, indent=1).encode()
        if not stored.exists():
            write_atomically(stored, content, mode=mode_for(plain))
        elif stored.read_bytes() != content:
            found, its_seed = self.read_recipe()
            if found.identity(its_seed) == identity or stored.read_bytes() == shared(plain):
                planned = stored.stat()
                write_atomically(stored, content, mode=mode_for(plain))
                os.utime(stored, ns=(planned.st_atime_ns, planned.st_mtime_ns))  # keep the time of the plan

    def shareable_recipe(self) -> bytes:
        """The content of recipe.json without passwords, to be shared."""
        stored = (self.path / "recipe.json").read_bytes()
        content = parsed_json(stored)
        return stored if values_without_secrets(content) == content else shared(content)

    def read_recipe(self) -> "tuple[AnyRecipe, int]":
        """The resolved recipe and the seed; CannotResume if they differ from those the run was made with.

        The user's own functions are those in this folder.
        """
        from scalerl.recipe import ResolvedRecipe  # takes longer to load than all else that `platform logs` needs
        from scalerl.recipe.command import recipe_from_stored

        path = self.path / "recipe.json"
        way_back = (
            "Restore the file, or delete it and repeat the command that made the run (`platform sweep` or "
            "`platform train`), which rewrites it"
        )
        try:
            content = parsed_json(path.read_bytes())
            recipe, seed = recipe_from_stored(content["recipe"]), content["seed"]
            written = content.get("id")
            if type(seed) is not int:
                raise TypeError(f"seed: found {seed!r}; must be a whole number")
        except FileNotFoundError:
            raise CannotResume(f"{path} is missing. {way_back}") from None
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])
            raise CannotResume(
                f"{path} is not a recipe of this version ({faults}): it was edited, or another version wrote it. "
                f"{way_back}"
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"no key {error}" if isinstance(error, KeyError) else error
            raise CannotResume(f"{path} is damaged ({reason}). {way_back}") from error
        identity, name = recipe.identity(seed), self.path.name
        for expected in (written, name if IDENTITY.fullmatch(name) else None):
            if expected is not None and expected != identity and WITHOUT_PASSWORDS not in content:
                raise CannotResume(
                    f"{path} describes run {identity}, but this is run {expected}: the file was edited, or "
                    f"another version of the code, which gives this recipe another id, wrote it. {way_back}. To train "
                    "with other settings, write them in a recipe or sweep file"
                )
        return (recipe.with_own_in(self.own) if isinstance(recipe, ResolvedRecipe) else recipe), seed

    def read_resolved(self) -> "tuple[ResolvedRecipe, int]":
        """The recipe and seed of a run of our own trainer; CannotResume if its trainer is a program."""
        from scalerl.recipe import ResolvedRecipe

        recipe, seed = self.read_recipe()
        if isinstance(recipe, ResolvedRecipe):
            return recipe, seed
        raise CannotResume(f"{self.path}: this run was trained by a program ({recipe.command[0]}), not by our trainer")

    def read_status(self) -> RunStatus:
        """The run's status; that of a run not yet started if status.json is unusable.

        In that case the message says so: the next attempt resumes from the checkpoint and rewrites the file.
        """
        path = self.path / "status.json"
        try:
            return RunStatus.from_json(path.read_bytes())
        except FileNotFoundError:
            return RunStatus()
        except (OSError, ValueError) as error:
            return RunStatus(
                message=f"{path} is damaged ({error}); the next attempt resumes from the checkpoint and rewrites it"
            )

    def write_status(self, status: RunStatus, *, is_last: bool = True) -> None:
        """Replace status.json; OSError if that fails.

        A heartbeat is tried once, since the next one follows soon. The last status of an attempt is tried repeatedly,
        and finally written over the old one, for which even a full disk has room.
        """
        path, content = self.path / "status.json", status.to_json()
        if not is_last:
            with naming(path):
                replace_once(path, content)
            return
        try:
            write_atomically(path, content)
        except OSError:
            if not path.exists():
                raise
            with path.open("r+b") as file:
                file.write(content)
                file.truncate()
