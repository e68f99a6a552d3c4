"""Options and arguments that several commands have, with their completion in a shell."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from ablations.cli.named_sweeps import find_sweep
from ablations.errors import AblationsError
from ablations.files.lookup import FileKind, files_of
from ablations.home.home import find_home

HomeOption = Annotated[
    Path | None, typer.Option("--home", help="Home folder. Default: ABLATIONS_HOME, or ./ablation-runs.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="path=value for every variant; may be repeated.")]
TrackingOption = Annotated[
    str | None,
    typer.Option(
        "--tracking-uri",
        envvar="MLFLOW_TRACKING_URI",
        help="MLflow server; put its user and password in MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD. "
        "Default: the home folder's own store.",
    ),
]
TaskOption = Annotated[
    str | None,
    typer.Option("--task", help="Task whose curves to fit. Default: the only one, or all tasks of a mix."),
]
AloneOption = Annotated[bool, typer.Option("--alone", help="Estimate run-to-run variation from this sweep only.")]
LogOption = Annotated[
    str | None,
    typer.Option(
        help="Trainer that wrote the logs: verl, prime-rl, slime, skyrl, nemo-rl, openrlhf, trl or areal. Then name "
        "one file or folder per run."
    ),
]
GpusOption = Annotated[float | None, typer.Option(help="With --log: GPUs per run, so that compute is in GPU-hours.")]
ScoreOption = Annotated[
    str | None, typer.Option(help="Held-out pass rate in logs or MLflow: a column or an expression.")
]
ComputeOption = Annotated[
    str | None,
    typer.Option(
        help='Compute in logs or MLflow: a column, or an expression such as "cumsum(perf/time_per_step) * 64 / 3600".'
    ),
]
StepOption = Annotated[
    str | None, typer.Option(help="Step in logs: a column or an expression. Default: the file's own.")
]
MlflowOption = Annotated[
    str | None, typer.Option(help="MLflow server or store. Then name the experiment, with --score and --compute.")
]
ReferenceOption = Annotated[
    str | None,
    typer.Option("--reference", help="Variant with which to compare the others. Default: the sweep's reference."),
]
ExecutorName = Literal["local", "slurm", "ray"]
ExecutorOption = Annotated[
    ExecutorName,
    typer.Option("--executor", help="Place where runs train: this machine, Slurm jobs, or a Ray cluster."),
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        "--budget", help="Compute per run: 2 (in the scale's unit), 160h (GPU-hours), or 2x (twice the file's budget)."
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs", min=1, help="Runs at a time. Default: as many as cores and GPUs allow, or resources.at_once."
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", help="Slurm: submit without asking, regardless of the cost.")]


def started_sweeps(begun: str) -> list[str]:
    """Shell completion: sweeps whose names start with `begun`, in the default home folder."""
    return [name for name in find_home(None).sweep_names() if name.startswith(begun)]


def files_begun(kind: FileKind) -> Callable[[str], list[str]]:
    """Shell completion: recipes, scales or studies whose names start with what is typed."""

    def names(begun: str) -> list[str]:
        return sorted(name for name in files_of(kind) if name.startswith(begun))

    return names


ScaleOption = Annotated[
    str | None,
    typer.Option("--scale", help="Scale to use instead of the file's.", autocompletion=files_begun("scale")),
]


def further_sweeps(context: typer.Context, begun: str) -> list[str]:
    """Shell completion: like `started_sweeps`, without the sweeps already named."""
    named = context.params.get("sweeps") or ()
    return [name for name in started_sweeps(begun) if name not in named]


def variants_of_sweep(context: typer.Context, begun: str) -> list[str]:
    """Shell completion: variants of the sweep that the command line names, or of the last sweep started."""
    named = context.params.get("sweep")
    plan = find_sweep(None, named if isinstance(named, str) else None).plan
    return [one.name for one in plan.variants if one.name.startswith(begun)]


def runs_begun(context: typer.Context, begun: str) -> list[str]:
    """Shell completion: variants and runs of the sweep in `--sweep`, or of the last sweep started."""
    named = context.params.get("sweep")
    plan = find_sweep(None, named if isinstance(named, str) else None).plan
    names = [*(one.name for one in plan.variants), *plan.run_names]
    return [name for name in names if name.startswith(begun)]


def sweeps_and_runs(context: typer.Context, begun: str) -> list[str]:
    """Shell completion: sweeps, and what `runs_begun` finds."""
    return [*started_sweeps(begun), *runs_begun(context, begun)]


def compared_begun(context: typer.Context, begun: str) -> list[str]:
    """Shell completion: with `--sweep` the variants of that sweep, else recipes."""
    return variants_of_sweep(context, begun) if context.params.get("sweep") else files_begun("recipe")(begun)


SweepArgument = Annotated[
    str | None,
    typer.Argument(help="Sweep name or file. Default: the last sweep started.", autocompletion=started_sweeps),
]


SweepsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SWEEP",
        help="Sweep names or files. Several sweeps are compared with the reference of the first. Default: the sweep "
        "started last.",
        autocompletion=further_sweeps,
    ),
]


def refuse_idle(source: str, options: Mapping[str, object]) -> None:
    """Raise AblationsError if one of the options is given, because it has no effect with `source`."""
    for name, value in options.items():
        if value is not None and value is not False:
            said = name if value is True else f"{name} {value}"
            raise AblationsError(f"{said} has no effect with {source}; omit this option")
