"""Packs a sweep and its runs into one file, `loo.tar.gz`, from which another home folder reads the same numbers.

>>> export_sweep(read_sweep(home, "loo"), Path("loo.tar.gz"))

Files that a home folder can recreate are left out (cached readings, reports, Optuna's database), and so are files that
make sense in one place only: locks, Slurm submissions, MLflow's state. gzip's checksum finds damage on the way; a run's
checkpoint says what its log was, here as there (`scalerl.run.run_log.log_fault`).
"""

import gzip
import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from ablations.errors import AblationsError
from ablations.home.started_sweep import StartedSweep
from ablations.running.ending import refuse_while_going
from ablations.terminal.progress_bar import Done
from scalerl.durable import sync_file
from scalerl.run.run_folder import RunFolder

PLAN = "sweep/plan.json"
FILE_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
"""A safe file name: not hidden, no path, no leading dash."""
OF_SWEEP = re.compile(r"sweep/(plan|declared|notified|stopped|search)\.json|sweep/(sweep\.yaml|cancelled)")
OF_RUN = re.compile(
    r"runs/(?P<run>[0-9a-f]{12})/((recipe|status)\.json|(metrics|rollouts|left_out)\.jsonl"
    rf"|logs/attempt-{FILE_PATTERN}\.log|own/({FILE_PATTERN}/)*{FILE_PATTERN}\.py|checkpoint/manifest\.json)"
)
HEAVY = re.compile(
    rf"runs/(?P<run>[0-9a-f]{{12}})/(checkpoint|model|work)/{FILE_PATTERN}|warm_starts/[0-9a-f]{{12}}/{FILE_PATTERN}"
)
"""Files included only with `--checkpoints`."""


def export_sweep(sweep: StartedSweep, path: Path, *, with_checkpoints: bool = False, done: Done | None = None) -> None:
    """Write the archive atomically; raises AblationsError if the sweep is still training or `path` exists."""
    if path.exists():
        raise AblationsError(f"{path} already exists; delete it or choose another file with --to")
    refuse_while_going(sweep)
    sources = dict(_sources(sweep, with_checkpoints))
    total, written = sum(source.stat().st_size for source in sources.values()), 0
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with (
            temporary.open("wb") as file,
            gzip.GzipFile("", "wb", 6, file, mtime=0) as zipped,
            tarfile.open(fileobj=zipped, mode="w|") as archive,
        ):
            for name, source in sources.items():
                archive.add(source, name, recursive=False, filter=_of_nobody)
                written += source.stat().st_size
                if done is not None:
                    done(written, total)
        sync_file(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The member without its owner and mode."""
    return member.replace(uid=0, gid=0, uname="", gname="", mode=0o644, deep=False)


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
