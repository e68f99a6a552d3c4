"""Packs a sweep and its runs into one file, `loo.tar.gz`, which gives the same numbers in another home folder.

>>> export_sweep(read_sweep(home, "loo"), Path("loo.tar.gz"))

Files that a home folder can recreate are left out (cached readings, reports, Optuna's database), and so are files that
make sense in one place only: locks, Slurm submissions, MLflow's state. Passwords in commands, settings and output are
hidden. gzip's checksum finds damage on the way; a run's
checkpoint says what its log was, here as there (`scalerl.run.run_log.log_fault`).
"""

import gzip
import json
import re
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from ablations.errors import AblationsError
from ablations.home.plan import without_passwords
from ablations.home.started_sweep import StartedSweep
from ablations.running.ending import refuse_while_going
from ablations.running.leftovers import temporary_in
from ablations.signals import handled
from ablations.terminal.progress_bar import Done
from scalerl.credentials import without_secrets
from scalerl.durable import naming, sync_file
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import RunFolder

PLAN = "sweep/plan.json"
FILE_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
"""A safe file name: not hidden, no path, no leading dash."""
OF_SWEEP = re.compile(
    r"sweep/(plan|declared|notes|notified|sources|stopped|search)\.json|sweep/(sweep\.yaml|cancelled)"
)
OF_RUN = re.compile(
    r"runs/(?P<run>[0-9a-f]{12})/((notes|recipe|source|status)\.json|(metrics|rollouts|left_out)\.jsonl"
    rf"|logs/attempt-{FILE_PATTERN}\.log|own/({FILE_PATTERN}/)*{FILE_PATTERN}\.py|checkpoint/manifest\.json)"
)
HEAVY = re.compile(
    rf"runs/(?P<run>[0-9a-f]{{12}})/(checkpoint|model|work)/{FILE_PATTERN}|warm_starts/[0-9a-f]{{12}}/{FILE_PATTERN}"
)
"""Files included only with `--checkpoints`."""
OF_WORDS = re.compile(r"/(plan\.json|notes\.json|recipe\.json|sweep\.yaml|attempt-[^/]*\.log)$")
"""Files with commands, settings and messages, in which passwords are hidden."""


def export_sweep(sweep: StartedSweep, path: Path, *, with_checkpoints: bool = False, done: Done | None = None) -> None:
    """Write the archive atomically; raises AblationsError if the sweep is still training or `path` exists."""
    if path.exists():
        raise AblationsError(f"{path} already exists; delete it or choose another file with --to")
    refuse_while_going(sweep)
    sources = dict(_sources(sweep, with_checkpoints))
    total, written = sum(source.stat().st_size for source in sources.values()), 0
    temporary = temporary_in(path.parent, "export")
    try:
        with (
            handled(signal.default_int_handler, signal.SIGTERM, signal.SIGHUP),
            naming(path),
            temporary.open("wb") as file,
            gzip.GzipFile("", "wb", 6, file, mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w|") as archive,
        ):
            for name, source in sources.items():
                _add(archive, source, name)
                written += source.stat().st_size
                if done is not None:
                    done(written, total)
        sync_file(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _add(archive: tarfile.TarFile, source: Path, name: str) -> None:
    """Add a file under this name, without its passwords."""
    with TemporaryFile() as hidden:
        member = archive.gettarinfo(source, name)
        member = member.replace(uid=0, gid=0, uname="", gname="", mode=0o644, deep=False)
        if OF_WORDS.search(name) and _write_hidden(source, hidden):
            member.size = hidden.tell()
            hidden.seek(0)
            archive.addfile(member, hidden)
        else:
            with source.open("rb") as file:
                archive.addfile(member, file)


def _write_hidden(source: Path, place: IO[bytes]) -> bool:
    """Write a file's content without its passwords to `place`; False if it has none."""
    match source.name:
        case "recipe.json":
            content = RunFolder(source.parent).shareable_recipe()
        case "plan.json":
            plan = parsed_json(source.read_bytes())
            hidden = without_passwords(plan)
            content = source.read_bytes() if hidden == plan else json.dumps(hidden, indent=1).encode()
        case _:  # line by line, because a program may have printed a lot
            is_other = False
            with source.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
                for line in file:
                    is_other |= (shown := without_secrets(line)) != line
                    place.write(shown.encode(errors="surrogateescape"))
            return is_other
    place.write(content)
    return content != source.read_bytes()


def _sources(sweep: StartedSweep, with_checkpoints: bool) -> Iterator[tuple[str, Path]]:
    """Every file that belongs to the sweep, with its name in the archive; the plan comes first."""
    yield PLAN, sweep.folder / "plan.json"
    for path in sorted(sweep.folder.iterdir()):
        if (name := f"sweep/{path.name}") != PLAN and OF_SWEEP.fullmatch(name):
            yield name, path
    warm_starts = dict[str, Path]()
    for run in sweep.plan.runs:
        folder = sweep.run(run.id)
        for path in sorted(one for one in folder.path.rglob("*") if one.is_file() and not one.is_symlink()):
            name = f"runs/{run.id}/{path.relative_to(folder.path).as_posix()}"
            if OF_RUN.fullmatch(name) or (with_checkpoints and HEAVY.fullmatch(name)):
                yield name, path
        if with_checkpoints and folder.checkpoint.exists():
            warm_starts |= _warm_start(sweep, folder)
    yield from warm_starts.items()


def _warm_start(sweep: StartedSweep, folder: RunFolder) -> dict[str, Path]:
    """The files of a run's warm start, without which the run cannot resume."""
    from scalerl.run.warm_start import start_key
    from scalerl.tasks import all_tasks
    from scalerl.tokens import make_tokenizer

    recipe, seed = folder.read_resolved()
    left_out: tuple[str, ...] = ()
    if folder.left_out.exists():  # only the task files tell which of its rows change the key
        tokenizer = make_tokenizer(recipe.model, thinks=recipe.generation.thinks)
        left_out = all_tasks(recipe.tasks, recipe.evaluation.downstream, tokenizer).trained.newly_left_out
    place = sweep.home.warm_starts / start_key(recipe, seed, left_out)
    return {f"warm_starts/{place.name}/{path.name}": path for path in sorted(place.glob("*")) if path.is_file()}
