"""The commands by which runs enter and leave a home folder: export, import."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ablations.cli.named_sweeps import find_sweep
from ablations.cli.options import (
    ComputeOption,
    GpusOption,
    HomeOption,
    LogOption,
    MlflowOption,
    ScoreOption,
    StepOption,
    SweepArgument,
    refuse_idle,
)
from ablations.cli.output import command_given, tell
from ablations.cli.read import check_cutoff, foreign_runs, given
from ablations.errors import AblationsError
from ablations.fit.options import FitLoss
from ablations.home.home import Home, find_home
from ablations.home.started_sweep import StartedSweep
from ablations.imports.from_archive import import_sweep
from ablations.running.archive import export_sweep
from ablations.running.ending import refuse_while_going
from ablations.terminal.progress_bar import progress_bar
from ablations.text import counted

if TYPE_CHECKING:
    from ablations.imports.orders import Foreign

ARCHIVES = (".tar.gz", ".tgz")


def export(
    sweep: SweepArgument = None,
    to: Annotated[
        Path | None,
        typer.Option(
            help="File to write. Default: SWEEP.tar.gz. With --curves a folder, or a file .csv or .csv.gz. Default: "
            "SWEEP-curves."
        ),
    ] = None,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Include checkpoints and models, so that runs can be trained further.")
    ] = False,
    curves: Annotated[
        bool,
        typer.Option("--curves", help="Write every held-out evaluation to one CSV file, with a data card, to publish."),
    ] = False,
    license_name: Annotated[
        str | None,
        typer.Option("--license", help="With --curves: licence of the data in the card, such as apache-2.0."),
    ] = None,
    home: HomeOption = None,
) -> None:
    """Write a sweep and its runs to one file, for `platform import` in another home folder; or its curves, to publish.

    With --curves, anybody can read the file, and `platform compare` gives the study's own answers from it.
    """
    started = find_sweep(home, sweep)
    if curves:
        refuse_idle("--curves", {"--checkpoints": checkpoints})
        export_curves(started, to or Path(f"{started.name}-curves"), license_name)
        return
    refuse_idle("an export without --curves", {"--license": license_name})
    path = to or Path(f"{started.name}.tar.gz")
    with progress_bar("writing bytes") as done:
        export_sweep(started, path, with_checkpoints=checkpoints, done=done)
    left_out = "" if checkpoints else ", without checkpoints"
    runs, size = counted(len(started.plan.runs), "run"), f"{path.stat().st_size / 1e6:,.1f} MB"
    tell(f"{path}: sweep '{started.name}', {runs}{left_out}, {size}")


def export_curves(started: StartedSweep, to: Path, license_name: str | None) -> None:
    """Write the curves of a sweep with their card, and say what was written and what the runs lack."""
    from ablations.findings.results import read_results
    from ablations.report.data_set import write_data_set

    refuse_while_going(started)
    with progress_bar("fitting curves") as done:
        results = read_results(started, alone=True, done=done)
    file, card = write_data_set(results, to, license_name=license_name or "")
    read = [run for run in results.runs if run.curve is not None]
    without = [run.name for run in results.runs if run.curve is None]
    num_readings = sum(run.curve.score.size for run in read if run.curve is not None)
    tell(f"{file}: {counted(num_readings, 'evaluation')} of {counted(len(read), 'run')}")
    if without:
        tell(f"Without an evaluation: {', '.join(without)}.")
    tell(f"{card}: the data card{'' if license_name else '; it says that no licence was given (--license)'}")


def import_(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Logs, one file or folder per run, with --log, or with --score and --compute; one CSV file of curves; "
            "folders of ablations.start; an experiment with --mlflow; or a file written by `platform export`.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option("--as", help="Name of the sweep here. Default: its own, or that of the file or folder."),
    ] = None,
    log: LogOption = None,
    gpus: GpusOption = None,
    score: ScoreOption = None,
    compute: ComputeOption = None,
    step: StepOption = None,
    samples: Annotated[
        str | None, typer.Option(help="Generations behind each score in logs or MLflow: an expression or a number.")
    ] = None,
    mlflow: MlflowOption = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            help="Regular expression for the names of runs in logs, with groups (?P<variant>...) and (?P<seed>...). "
            "Default: dapo-s1 is variant dapo, seed 1."
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            help="Configuration key (in MLflow a param or tag, in a table with several runs a column) that holds the "
            "variant. Default in MLflow: variant."
        ),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(
            help="Configuration key (in MLflow a param or tag, in a table with several runs a column) that holds the "
            "seed. Default: runs are numbered in order."
        ),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Variant with which to compare the others. Default: the first one.")
    ] = None,
    fit_from: Annotated[
        str | None, typer.Option("--from", help='Fit from this compute on, or "auto", as in `fit`. Default: 0.')
    ] = None,
    loss: Annotated[
        FitLoss | None, typer.Option(help="Loss of the fits; huber down-weights outliers. Default: squares.")
    ] = None,
    ceiling: Annotated[float | None, typer.Option(help="Highest pass rate that the task allows, if known.")] = None,
    home: HomeOption = None,
) -> None:
    """Import runs of other trainers, or an exported sweep, as a sweep of this home folder.

    Run again, the command reads what has changed and adds what is new. Runs that were trained here stay as they are.
    """
    columns = given(gpus=gpus, score=score, compute=compute, step=step, samples=samples)
    naming = given(pattern=pattern, variant=variant, seed=seed)
    fits = given(fit_from=check_cutoff(fit_from), loss=loss, ceiling=ceiling)
    options = {f"--{key}": value for key, value in (given(log=log) | columns | naming).items()}
    place = find_home(home)
    if len(sources) == 1 and sources[0].endswith(ARCHIVES) and mlflow is None:
        refuse_idle("an exported sweep", options | {"--reference": reference, "--from": fit_from, "--loss": loss})
        names = [import_archive(place, Path(sources[0]), name)]
    else:
        foreign = foreign_runs(sources, given(trainer=log) | columns, naming, mlflow=mlflow)
        names = import_foreign(place, foreign, name, reference, fits)
    said = "To compare its variants, run `platform compare {}{}`." if len(names) == 1 else "Run `platform ladder {}{}`."
    tell(said.format(" ".join(names), place.end_of_command))


def import_archive(home: Home, archive: Path, name: str | None) -> str:
    """Unpack an exported sweep and say what was added; returns the name of the sweep."""
    if not archive.is_file():
        raise AblationsError(f"{archive}: no such file; to write one, run `platform export SWEEP`")
    with progress_bar("reading bytes") as done:
        came = import_sweep(home, archive, name=name, done=done)
    here = f"; {counted(came.num_here, 'run')} were here already and stay as they are" if came.num_here else ""
    tell(f"{home.path}: sweep '{came.sweep.name}' with {counted(came.num_new, 'run')}{here}")
    if not came.with_checkpoints:
        tell("The runs have no checkpoints: they can be read and compared, but not trained further.")
    return came.sweep.name


def import_foreign(
    home: Home, foreign: "Foreign", name: str | None, reference: str | None, fits: Mapping[str, Any]
) -> list[str]:
    """Import runs of other trainers and say what was added; returns the name of each sweep."""
    from ablations.imports.import_runs import import_runs

    command = command_given(home)
    names = []
    for order in foreign.orders(name, command=command, reference=reference, fits=fits):
        with progress_bar("reading logs") as done:
            came = import_runs(home, order, done=done)
        tell(f"{home.path}: sweep '{came.sweep.name}' with {counted(len(came.sweep.plan.runs), 'run')}, {came.said}")
        for note in came.sweep.plan.notes:
            tell(note)
        names.append(came.sweep.name)
    return names
