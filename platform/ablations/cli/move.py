"""The commands that take a sweep elsewhere, or give it another name: rename, export, import."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ablations.cli.options import HomeOption, SweepArgument, find_sweep, started_sweeps, tell
from ablations.errors import AblationsError
from ablations.home.home import find_home
from ablations.text import counted


def rename(
    sweep: Annotated[str, typer.Argument(help="Sweep name.", autocompletion=started_sweeps)],
    name: Annotated[str, typer.Argument(help="What it is to be called.")],
    home: HomeOption = None,
) -> None:
    """Give a sweep another name, here and in MLflow. Its runs and what is known of them stay as they are."""
    from ablations.running.rename import rename_sweep
    from ablations.tracking.synchroniser import push_sweep

    started = find_sweep(home, sweep)
    made = rename_sweep(started, name)
    tell(f"Sweep '{started.name}' is now '{name}'.")
    if made.tracking_uri:
        tell(str(push_sweep(made.sweep, made.tracking_uri)))
    if made.had_report:
        tell(f"`platform report {name}` writes its report again, with the new name.")
    tell(f"A sweep file that says `name: {started.name}` starts a sweep of that name again, with the same runs.")


def export(
    sweep: SweepArgument = None,
    to: Annotated[Path | None, typer.Option("--to", help="File to write; by default SWEEP.tar.gz.")] = None,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="With checkpoints and models, so that runs can be trained further.")
    ] = False,
    home: HomeOption = None,
) -> None:
    """Write a sweep with its runs into one file, which `platform import` reads in another home folder."""
    from ablations.running.archive import export_sweep
    from ablations.terminal.progress_bar import progress_bar

    started = find_sweep(home, sweep)
    path = to or Path(f"{started.name}.tar.gz")
    with progress_bar("writing bytes") as done:
        made = export_sweep(started, path, with_checkpoints=checkpoints, done=done)
    left_out = "" if checkpoints else ", without checkpoints"
    tell(f"{path}: sweep '{started.name}', {counted(made.num_runs, 'run')}{left_out}, {made.num_bytes / 1e6:,.1f} MB")


def import_(
    archive: Annotated[Path, typer.Argument(help="File that `platform export` wrote.")],
    name: Annotated[str | None, typer.Option("--as", help="Name of the sweep here, instead of its own.")] = None,
    home: HomeOption = None,
) -> None:
    """Bring a sweep that `platform export` wrote into this home folder. Every file is checked by its digest."""
    from ablations.running.unpack import import_sweep
    from ablations.terminal.progress_bar import progress_bar

    place = find_home(home)
    if not archive.is_file():
        raise AblationsError(f"{archive}: no such file; `platform export SWEEP` writes one")
    with progress_bar("reading bytes") as done:
        came = import_sweep(place, archive, name=name, done=done)
    here = f"; {counted(came.num_here, 'run')} that were here already stay as they are" if came.num_here else ""
    tell(f"{place.path}: sweep '{came.sweep.name}' with {counted(came.num_new, 'run')}{here}")
    if not came.with_checkpoints:
        tell("Its runs came without checkpoints: they can be read and compared, and not be trained further.")
    where = f" --home {shlex.quote(str(home))}" if home else ""
    tell(f"`platform compare {came.sweep.name}{where}` compares its variants.")
