"""Shared by the commands: options, finding sweeps by name, and output."""

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from ablations.errors import AblationsError, did_you_mean
from ablations.files.lookup import FileKind, files_of
from ablations.home.home import Home, find_home
from ablations.home.plan import Plan
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.home.state import State
from ablations.running.ending import all_ended
from ablations.status.progress import run_rows
from ablations.status.rows import RunRow
from ablations.study.expand import expand
from ablations.study.family import scale_stem
from ablations.study.sweep import load_sweep
from ablations.terminal.screen import Screen
from ablations.terminal.short_names import meant
from ablations.terminal.visible import made_visible

FAILED, WRONG_INPUT, NOT_FINISHED = 1, 2, 3
SCHEMA = 1
"""Version of all JSON documents. A new key keeps the number; a key that is removed or changes its meaning raises the
number."""
_has_printed_json = False
PIPE_WIDTH = 160

HomeOption = Annotated[
    Path | None, typer.Option("--home", help="Home folder. Default: ABLATIONS_HOME, or ./ablation-runs.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="path=value for every variant; may be repeated.")]
TrackingOption = Annotated[
    str | None,
    typer.Option(
        "--tracking-uri", envvar="MLFLOW_TRACKING_URI", help="MLflow server. Default: the home folder's own store."
    ),
]
TaskOption = Annotated[
    str | None,
    typer.Option("--task", help="Task whose curves to fit. Default: the only one, or all tasks of a mix."),
]
AloneOption = Annotated[bool, typer.Option("--alone", help="Estimate run-to-run variation from this sweep only.")]
ScaleOption = Annotated[str | None, typer.Option("--scale", help="Scale to use instead of the file's.")]
ReferenceOption = Annotated[
    str | None, typer.Option("--reference", help="For a CSV file: variant with which to compare the others.")
]
ExecutorName = Literal["local", "slurm", "ray"]
ExecutorOption = Annotated[
    ExecutorName,
    typer.Option("--executor", help="Place where runs train: this machine, Slurm jobs, or a Ray cluster."),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs", min=1, help="Runs at a time. Default: as many as cores and GPUs allow, or resources.at_once."
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", help="Slurm: submit without asking, regardless of the cost.")]


def started_sweeps(begun: str) -> list[str]:
    """Shell completion: sweeps whose names start with `begun`, in the home folder chosen without `--home`."""
    return [name for name in find_home(None).sweep_names() if name.startswith(begun)]


def files_begun(kind: FileKind) -> Callable[[str], list[str]]:
    """Shell completion: recipes, scales or studies whose names start with what is typed."""

    def names(begun: str) -> list[str]:
        return sorted(name for name in files_of(kind) if name.startswith(begun))

    return names


def further_sweeps(context: typer.Context, begun: str) -> list[str]:
    """Shell completion: like `started_sweeps`, without the sweeps already named."""
    named = context.params.get("sweeps") or ()
    return [name for name in started_sweeps(begun) if name not in named]


def variants_of_sweep(context: typer.Context, begun: str) -> list[str]:
    """Shell completion: variants of the sweep that the command line names, or of the sweep last started."""
    named = context.params.get("sweep")
    plan = find_sweep(None, named if isinstance(named, str) else None).plan
    return [one.name for one in plan.variants if one.name.startswith(begun)]


SweepArgument = Annotated[
    str | None,
    typer.Argument(help="Sweep name or file. Default: the sweep last started.", autocompletion=started_sweeps),
]


def is_curve_file(name: str) -> bool:
    """True for the name of a table of curves."""
    return name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))


def refuse_idle(source: str, options: Mapping[str, object]) -> None:
    """Raise AblationsError if one of the options is given, because it has no effect with `source`."""
    for name, value in options.items():
        if value is not None and value is not False:
            said = name if value is True else f"{name} {value}"
            raise AblationsError(f"{said} has no effect with {source}; omit this option")


def known_variant(name: str, plan: Plan, what: str = "variant") -> str:
    """The variant of this name, which may be short for a grid; AblationsError names the variants."""
    names = [variant.name for variant in plan.variants]
    if (found := meant(name, names)) not in names:
        raise AblationsError(
            f"unknown {what} '{found}' of sweep '{plan.sweep}'; {did_you_mean(found, names, 'variants')}"
        )
    return found


def console(*, stderr: bool = False) -> Screen:
    """A console as wide as the terminal, or wide enough for every table in a file or pipe; shows control characters."""
    out = Screen(stderr=stderr)
    return out if out.is_terminal else Screen(stderr=stderr, width=PIPE_WIDTH)


def tell(text: str, *, end: str = "\n") -> None:
    """Print plain text on standard output and flush; control characters are made visible."""
    print(made_visible(text), end=end, flush=True)


def warn(message: str) -> None:
    """Print a warning on standard error; nothing for an empty message."""
    if message:
        console(stderr=True).say(f"warning: {message}", style="yellow")


def print_json(data: Any) -> None:
    """Print plain data as JSON; raises ValueError for numbers that JSON lacks."""
    global _has_printed_json
    print(json.dumps(data, indent=1, allow_nan=False), flush=True)
    _has_printed_json = True


def has_printed_json() -> bool:
    """True once this process has printed a JSON document, of which standard output holds at most one."""
    return _has_printed_json


def own_command() -> str:
    """The name by which the user called `platform`, so that printed commands can be pasted."""
    called = Path(sys.argv[0])
    return shlex.quote(sys.argv[0]) if called.name == "platform" and called.parent != Path() else "platform"


def pages_command(home: Home) -> str:
    return f"{own_command()} dashboard {home.option}"


def say_pages(home: Home, out: Console) -> None:
    """Print the dashboard command below a result, only at a terminal."""
    if out.is_terminal:
        out.print(f"\ndashboard  {pages_command(home)}", soft_wrap=True, highlight=False, markup=False)


def find_sweep(home_option: Path | None, name: str | None) -> StartedSweep:
    """The started sweep given by `--home` and a name, a sweep file, or None for the last one."""
    home = find_home(home_option)
    return read_sweep(home, find_sweep_name(home, name))


def find_sweeps(home_option: Path | None, name: str | None) -> list[StartedSweep]:
    """The sweep as in `find_sweep`; for a sweep file with `scales`, the sweep at each started scale."""
    home = find_home(home_option)
    if started := [one for one in names_of_file(name or "") if one in home.sweep_names()]:
        return [read_sweep(home, one) for one in started]
    return [find_sweep(home_option, name)]


def find_sweep_name(home: Home, name: str | None) -> str:
    """The name of the sweep given by a name, a sweep file, or None; AblationsError lists the sweeps if unknown."""
    if name is not None and home.sweep_names() and _is_sweep_file(name):
        if names := names_of_file(name):
            raise AblationsError(
                f"{name} is a sweep at each of its scales; name one: {', '.join(names)}; to compare the scales, run "
                f"`platform ladder {name}`"
            )
        name = load_sweep(Path(name)).name
    if name and name not in home.sweep_names() and Path(name).exists() and not _is_sweep_file(name):
        raise AblationsError(
            f"{name} is a file or folder, not a sweep; `platform compare` reads folders of ablations.start, and logs "
            "with --log TRAINER --gpus N or with --score and --compute; its --curves writes a CSV file, which fit, "
            "forecast and design read"
        )
    return home.find_sweep(name)


def names_of_file(name: str) -> list[str]:
    """The sweeps of a sweep file with `scales`; empty for anything else."""
    if not _is_sweep_file(name):
        return []

    sweep = load_sweep(Path(name))
    return [f"{sweep.name}@{scale_stem(scale)}" for scale in sweep.named_scales]


def scales_of(file: Path, scale: str | None) -> tuple[str | None, ...]:
    """The scales of a sweep file to go through: that of `--scale`, else each of `scales`, else its own (None).

    Raises FileError for a mistake in any of them, so that none trains before it is found.
    """
    if scale is not None:
        return (scale,)
    names = load_sweep(file).named_scales
    for name in names:
        expand(file, scale=name, with_files=False)
    return names or (None,)


def _is_sweep_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml")) and Path(name).exists()


def unfinished_code(
    sweep: StartedSweep, rows: list[RunRow] | None = None, *, also_failed: tuple[State, ...] = ()
) -> int:
    """Exit code: 0 if every run is done or was stopped by a rule, 1 if one failed, 3 if runs are not finished."""
    rows = run_rows(sweep) if rows is None else rows
    if all_ended(sweep, rows):
        return 0
    has_failed = any(row.state.state.is_failure or row.state.state in also_failed for row in rows)
    return FAILED if has_failed else NOT_FINISHED
