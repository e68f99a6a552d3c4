"""The commands that move a sweep to another home folder: export, import."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ablations.cli.named_sweeps import find_sweep
from ablations.cli.options import HomeOption, SweepArgument
from ablations.cli.output import tell
from ablations.errors import AblationsError
from ablations.home.home import find_home
from ablations.running.archive import export_sweep
from ablations.running.unpack import import_sweep
from ablations.terminal.progress_bar import progress_bar
from ablations.text import counted


def export(
    sweep: SweepArgument = None,
    to: Annotated[Path | None, typer.Option(help="File to write. Default: SWEEP.tar.gz.")] = None,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Include checkpoints and models, so that runs can be trained further.")
    ] = False,
    home: HomeOption = None,
) -> None:
    """Write a sweep and its runs to one file, for `platform import` in another home folder."""
    started = find_sweep(home, sweep)
    path = to or Path(f"{started.name}.tar.gz")
    with progress_bar("writing bytes") as done:
        export_sweep(started, path, with_checkpoints=checkpoints, done=done)
    left_out = "" if checkpoints else ", without checkpoints"
    runs, size = counted(len(started.plan.runs), "run"), f"{path.stat().st_size / 1e6:,.1f} MB"
    tell(f"{path}: sweep '{started.name}', {runs}{left_out}, {size}")


def import_(
    archive: Annotated[Path, typer.Argument(help="File written by `platform export`.")],
    name: Annotated[str | None, typer.Option("--as", help="Name for the sweep here instead of its own.")] = None,
    home: HomeOption = None,
) -> None:
    """Import a sweep written by `platform export` into this home folder."""
    place = find_home(home)
    if not archive.is_file():
        raise AblationsError(f"{archive}: no such file; to write one, run `platform export SWEEP`")
    with progress_bar("reading bytes") as done:
        came = import_sweep(place, archive, name=name, done=done)
    here = f"; {counted(came.num_here, 'run')} were here already and stay as they are" if came.num_here else ""
    tell(f"{place.path}: sweep '{came.sweep.name}' with {counted(came.num_new, 'run')}{here}")
    if not came.with_checkpoints:
        tell("The runs have no checkpoints: they can be read and compared, but not trained further.")
    where = f" --home {shlex.quote(str(home))}" if home else ""
    tell(f"To compare its variants, run `platform compare {came.sweep.name}{where}`.")
