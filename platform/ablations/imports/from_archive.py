"""Unpacks an archive of a sweep (`ablations.running.archive`) into a home folder, without trusting its author.

No name leads out of the home folder, and only files of a sweep are accepted. Everything is unpacked beside the sweeps
and moved into place at the end, the sweep last. An interruption leaves runs without a sweep, and the next import uses
them.
"""

import gzip
import os
import shutil
import signal
import tarfile
import time
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ablations.errors import AblationsError
from ablations.home.home import Home, check_sweep_name
from ablations.home.notes import join_notes
from ablations.home.plan import Plan
from ablations.home.started_sweep import StartedSweep
from ablations.running.archive import HEAVY, OF_RUN, OF_SWEEP, PLAN
from ablations.running.leftovers import temporary_in
from ablations.signals import handled
from ablations.terminal.progress_bar import Done
from scalerl.durable import file_sha256, naming, sync_file
from scalerl.run.run_folder import IDENTITY

BLOCK_BYTES = 1 << 20


class NotAnArchive(AblationsError):
    """The archive is damaged, or holds a file that no sweep has."""


@dataclass(frozen=True, kw_only=True)
class Imported:
    """The result of an import: `Imported(sweep=loo, num_new=9, num_here=0, with_checkpoints=False)`."""

    sweep: StartedSweep
    num_new: int
    """Number of started runs that were added from the archive."""
    num_here: int
    """Number of runs with the same log that were already here; they stay as they are."""
    with_checkpoints: bool


def import_sweep(home: Home, path: Path, *, name: str | None = None, done: Done | None = None) -> Imported:
    """Import the sweep of an archive into a home folder, under its own name or `name`.

    Raises AblationsError, and leaves the home folder unchanged, if the file is damaged or not an archive, or if the
    home has a sweep of this name or one of the runs with another log.
    """
    if name is not None:
        check_sweep_name(name)
    home.require_writable()
    try:
        stop = handled(signal.default_int_handler, signal.SIGTERM, signal.SIGHUP)
        with stop, _unpacked(home, path, done) as staged:
            return _moved(home, staged, name)
    except (NotAnArchive, tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise AblationsError(f"{path}: not a complete archive of a sweep ({error}); nothing was imported") from error


@contextmanager
def _unpacked(home: Home, path: Path, done: Done | None) -> Iterator[Path]:
    """Unpack every file into a temporary folder, removed at the end."""
    staged = temporary_in(home.path, "import")
    staged.mkdir()
    try:
        with (
            path.open("rb") as file,
            gzip.GzipFile(fileobj=file) as unzipped,
            tarfile.open(fileobj=unzipped, mode="r|") as archive,
        ):
            for member in archive:
                if not member.isreg() or not any(kind.fullmatch(member.name) for kind in (OF_SWEEP, OF_RUN, HEAVY)):
                    raise NotAnArchive(f"{member.name} is not a file of a sweep")
                if member.size > (free := shutil.disk_usage(home.path).free):
                    raise AblationsError(
                        f"{path}: {member.name} needs {member.size / 1e6:,.0f} MB, but {home.path} has only "
                        f"{free / 1e6:,.0f} MB left"
                    )
                _take(archive, member, staged / member.name)
                if done is not None:
                    done(file.tell(), path.stat().st_size)
            while unzipped.read(BLOCK_BYTES):  # read to the end, to check gzip's own checksum
                pass
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _take(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """Write one member durably as a file with the same time."""
    source = archive.extractfile(member)
    assert source is not None  # member is a regular file
    place.parent.mkdir(parents=True, exist_ok=True)
    with naming(place), place.open("wb") as file:
        shutil.copyfileobj(source, file)
        file.flush()
        os.fsync(file.fileno())
    made = min(max(int(member.mtime), 0), int(time.time()))
    os.utime(place, (made, made))


def _moved(home: Home, staged: Path, name: str | None) -> Imported:
    """Move unpacked files into place; if the home disagrees, raises AblationsError and moves nothing."""
    plan, come = _unpacked_plan(staged)
    own = name or plan.sweep
    if home.sweep(own).exists():
        raise AblationsError(f"{home.path} already has a sweep '{own}'; choose another name with --as NAME")
    here = [run for run in come if home.run(run).path.exists() and not _is_unbegun(home, run)]
    if other := [run for run in here if not _has_same_log(home, staged, run)]:
        raise AblationsError(
            f"{home.path} has run {other[0]}{f' and {len(other) - 1} more' if len(other) > 1 else ''} of this sweep "
            "with a different log, trained further or elsewhere; import the archive into another home folder with "
            "--home FOLDER"
        )
    names = [path.relative_to(staged).as_posix() for path in staged.rglob("*") if path.is_file()]
    with_checkpoints = any(HEAVY.fullmatch(one) and not OF_RUN.fullmatch(one) for one in names)
    sweep = StartedSweep(home=home, plan=replace(plan, sweep=own))
    sweep.plan.write(staged / PLAN)
    _move_folders(home, staged, kept=here)
    try:
        (staged / "sweep").rename(sweep.folder)
    except OSError as error:
        raise AblationsError(
            f"sweep '{own}' was started here in the meantime; choose another name with --as NAME"
        ) from error
    sync_file(home.sweeps)
    return Imported(sweep=sweep, num_new=len(come) - len(here), num_here=len(here), with_checkpoints=with_checkpoints)


def _unpacked_plan(staged: Path) -> tuple[Plan, list[str]]:
    """The plan, and the ids of the runs that came with it; NotAnArchive if they do not belong together."""
    if not (staged / PLAN).exists():
        raise NotAnArchive("the archive has no plan")
    try:
        plan = Plan.read(staged / PLAN)
        check_sweep_name(plan.sweep)
    except AblationsError as error:
        raise NotAnArchive(str(error).removeprefix(f"{staged}/")) from error
    planned = [run.id for run in plan.runs]
    if odd := [run for run in planned if not IDENTITY.fullmatch(run)]:
        raise NotAnArchive(f"the plan has a run {odd[0]!r}, which is not a run id")
    come = sorted(path.name for path in (staged / "runs").glob("*"))
    if not set(come) <= set(planned):
        raise NotAnArchive("the plan belongs to another sweep")
    return plan, come


def _move_folders(home: Home, staged: Path, kept: Collection[str]) -> None:
    """Move warm starts and runs into the home; of the runs `kept` there, only the notes are joined."""
    for room in ("warm_starts", "runs", "sweeps"):
        (home.path / room).mkdir(exist_ok=True)
    for room in ("warm_starts", "runs"):
        for folder in sorted((staged / room).glob("*")):
            place = home.path / room / folder.name
            if place.exists() and room == "runs" and folder.name not in kept:
                shutil.rmtree(place)  # has not been trained
            if not place.exists():
                folder.rename(place)
            elif room == "runs":
                join_notes(home, place, folder)
        sync_file(home.path / room)


def _is_unbegun(home: Home, run: str) -> bool:
    """True if only the recipe of a run is here, because a sweep was prepared but has not trained the run."""
    return {path.name for path in home.run(run).path.iterdir()} <= {"recipe.json"}


def _has_same_log(home: Home, staged: Path, run: str) -> bool:
    """True if the run here has the archive's log, from which all else follows, or has not started in the archive."""
    own, other = home.run(run).metrics, staged / "runs" / run / "metrics.jsonl"
    if not other.exists():
        return True
    return own.exists() and file_sha256(own) == file_sha256(other)
