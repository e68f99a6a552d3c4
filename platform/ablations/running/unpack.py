"""An archive of a sweep (`ablations.running.archive`) brought into a home folder, whoever made it.

Nothing of it is believed before its digest is right, no name leads out of the home folder, and only files that a sweep
has are taken. All of it is unpacked beside the sweeps and moved into place at the end, the sweep last: what an
interruption leaves are runs without a sweep, which the next import takes as they are.
"""

import gzip
import os
import shutil
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from ablations.home.home import Home, check_sweep_name
from ablations.home.plan import Plan
from ablations.home.started_sweep import StartedSweep
from ablations.running.archive import (
    ARCHIVE_FORM,
    CONTENTS,
    HEAVY,
    OF_RUN,
    OF_SWEEP,
    PLAN,
    ArchivedFile,
    HashedFile,
)
from ablations.terminal.progress_bar import Done
from scalerl.durable import file_sha256, sync_file
from scalerl.run.run_folder import IDENTITY
from scalerl.run.sealed_json import read_sealed

MOST_CONTENTS = 1 << 28
"""Bytes of the first member: a file takes 150."""
BLOCK_BYTES = 1 << 20


class NotAnArchive(AblationsError):
    """The file is damaged, or holds what no sweep has."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """`Imported(sweep=loo, num_new=9, num_here=0, with_checkpoints=False)`."""

    sweep: StartedSweep
    num_new: int
    """Runs that came with the archive, as far as they have begun."""
    num_here: int
    """Runs that this home had already, with the same log; they stay as they are."""
    with_checkpoints: bool


def import_sweep(home: Home, path: Path, *, name: str | None = None, done: Done | None = None) -> Imported:
    """Bring the sweep of an archive into a home folder, under its own name or `name`.

    AblationsError where the archive is damaged or is none, and where the home has a sweep of this name, or a run of it
    with another log; then the home is as before.
    """
    if name is not None:
        check_sweep_name(name)
    home.require_writable()
    try:
        with _unpacked(home, path, name, done) as (staged, contents):
            return _moved(home, staged, contents, name or contents["sweep"])
    except (NotAnArchive, tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise AblationsError(f"{path}: not a whole archive of a sweep ({error}); nothing is imported") from error


@contextmanager
def _unpacked(home: Home, path: Path, name: str | None, done: Done | None) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A folder with every file of the archive, checked by size and SHA-256, and the archive's contents."""
    with gzip.open(path) as unzipped, tarfile.open(fileobj=unzipped, mode="r|") as archive:
        members = iter(archive)
        contents, files = _read_contents(archive, members)
        own = name or contents["sweep"]
        if home.sweep(own).exists():
            raise AblationsError(f"{home.path} has a sweep '{own}' already; import this one as another with --as NAME")
        total = sum(one.bytes for one in files.values())
        if total > (free := shutil.disk_usage(home.path).free):
            raise AblationsError(f"{path} takes {total / 1e6:,.0f} MB, and {home.path} has {free / 1e6:,.0f} MB left")
        staged = Path(tempfile.mkdtemp(prefix=".import-", dir=home.path))
        try:
            left, written = dict(files), 0
            for member in members:
                if (wanted := left.pop(member.name, None)) is None or not member.isreg():
                    raise NotAnArchive(f"{member.name} does not belong to it")
                _take(archive, member, wanted, staged / member.name)
                written += wanted.bytes
                if done is not None:
                    done(written, total)
            while unzipped.read(BLOCK_BYTES):  # to the end, where gzip has a checksum of its own
                pass
            if left:
                raise NotAnArchive(f"it ends before {next(iter(left))}")
            yield staged, contents
        finally:
            shutil.rmtree(staged, ignore_errors=True)


def _read_contents(
    archive: tarfile.TarFile, members: Iterator[tarfile.TarInfo]
) -> tuple[dict[str, Any], dict[str, ArchivedFile]]:
    """The first member, and of it the files; NotAnArchive unless every name is one that a sweep has."""
    first = next(members, None)
    if first is None or first.name != CONTENTS or not first.isreg() or first.size > MOST_CONTENTS:
        raise NotAnArchive(f"it does not begin with {CONTENTS}")
    file = archive.extractfile(first)
    assert file is not None  # of a regular file
    try:
        contents, is_sealed = read_sealed(file.read())
        if not is_sealed:
            raise ValueError("its SHA-256 is missing")
        if contents["form"] != ARCHIVE_FORM:
            raise ValueError(f"it has form {contents['form']}, and this version reads form {ARCHIVE_FORM}")
        files = checked(contents["files"], _FILES)
        check_sweep_name(contents["sweep"])
        contents["checkpoints"] = bool(contents["checkpoints"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotAnArchive(f"{CONTENTS}: {error}") from error
    for name, one in files.items():
        if not (OF_SWEEP.fullmatch(name) or OF_RUN.fullmatch(name) or HEAVY.fullmatch(name)) or one.bytes < 0:
            raise NotAnArchive(f"{name} is no file of a sweep")
    if PLAN not in files:
        raise NotAnArchive("it has no plan")
    return contents, files


def _take(archive: tarfile.TarFile, member: tarfile.TarInfo, wanted: ArchivedFile, place: Path) -> None:
    """One member as a file of the same time, durable."""
    source = archive.extractfile(member)
    assert source is not None  # of a regular file
    if member.size != wanted.bytes:
        raise NotAnArchive(f"{member.name} has {member.size} bytes, not {wanted.bytes}")
    place.parent.mkdir(parents=True, exist_ok=True)
    hashed = HashedFile(source)
    with place.open("wb") as file:
        while block := hashed.read(BLOCK_BYTES):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    if hashed.sha256 != wanted.sha256:
        raise NotAnArchive(f"{member.name}: its SHA-256 is not that of its content")
    made = min(max(int(member.mtime), 0), int(time.time()))
    os.utime(place, (made, made))


def _moved(home: Home, staged: Path, contents: dict[str, Any], name: str) -> Imported:
    """What was unpacked, put into its place; AblationsError, and nothing is moved, where the home disagrees."""
    try:
        plan = Plan.read(staged / PLAN)
    except AblationsError as error:
        raise NotAnArchive(str(error).removeprefix(f"{staged}/")) from error
    planned = [run.id for run in plan.runs]
    if odd := [run for run in planned if not IDENTITY.fullmatch(run)]:
        raise NotAnArchive(f"its plan has a run {odd[0]!r}, which is no id of a run")
    come = sorted(path.name for path in (staged / "runs").glob("*"))
    if plan.sweep != contents["sweep"] or not set(come) <= set(planned):
        raise NotAnArchive("its plan is of another sweep")
    here = [run for run in come if home.run(run).path.exists() and not _is_unbegun(home, run)]
    if other := [run for run in here if not _has_same_log(home, staged, run)]:
        raise AblationsError(
            f"{home.path} has run {other[0]}{f' and {len(other) - 1} more' if len(other) > 1 else ''} of this sweep "
            "with another log, trained further or elsewhere; import the archive into a home folder of its own, "
            "--home FOLDER"
        )
    sweep = StartedSweep(home=home, plan=replace(plan, sweep=name))
    sweep.plan.write(staged / PLAN)
    for room in ("warm_starts", "runs", "sweeps"):
        (home.path / room).mkdir(exist_ok=True)
    for room in ("warm_starts", "runs"):
        for folder in sorted((staged / room).glob("*")):
            place = home.path / room / folder.name
            if place.exists() and room == "runs" and folder.name not in here:
                shutil.rmtree(place)  # nothing of it has been trained
            if not place.exists():
                folder.rename(place)
        sync_file(home.path / room)
    try:
        (staged / "sweep").rename(sweep.folder)
    except OSError as error:
        raise AblationsError(f"sweep '{name}' has been started here meanwhile; --as NAME gives another name") from error
    sync_file(home.sweeps)
    return Imported(
        sweep=sweep, num_new=len(come) - len(here), num_here=len(here), with_checkpoints=contents["checkpoints"]
    )


def _is_unbegun(home: Home, run: str) -> bool:
    """Whether no more than the recipe of a run is here: a sweep that was prepared and has not trained it."""
    return {path.name for path in home.run(run).path.iterdir()} <= {"recipe.json"}


def _has_same_log(home: Home, staged: Path, run: str) -> bool:
    """Whether the run is here as it is in the archive, by its log, from which all else follows; or has not begun in
    the archive."""
    own, other = home.run(run).metrics, staged / "runs" / run / "metrics.jsonl"
    if not other.exists():
        return True
    return own.exists() and file_sha256(own) == file_sha256(other)


_FILES = TypeAdapter(dict[str, ArchivedFile])
