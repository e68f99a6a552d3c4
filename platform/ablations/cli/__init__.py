"""The commands of `platform`. Each imports what it needs when it runs: `--help` and `sweep --dry-run` start at once.

    options.py   what commands share: options, sweeps by name, output
    budget.py    what --budget means
    run.py       sweep, train
    plan.py      what a sweep would train and cost
    submit.py    a sweep on Slurm
    check.py     check, and the quick part of it that begins a sweep
    devices.py   plan: what each device of a cluster would hold
    jobs.py      cancel, retry
    follow.py    status, logs
    read.py      fit, compare, report
    forecast.py  forecast
    design.py    design, and what of it a sweep says
    reproduce.py reproduce
    studies.py   reproduce --list
    shelf.py     list, show, diff, delete
    move.py      rename, export, import
    serve.py     dashboard, mlflow, sync
    doctor.py    doctor
    reference.py every command as a page: docs/commands.md

Exit codes: 0 done, or submitted to Slurm; 1 some run failed, no curve has a fit, or the doctor or a check found an
error; 2 input, files or machine do not fit; 3 not finished, or interrupted.
"""

import os
import sys
from typing import Annotated

import typer

from ablations.cli import (
    check,
    design,
    devices,
    doctor,
    follow,
    forecast,
    jobs,
    move,
    read,
    reproduce,
    run,
    serve,
    shelf,
)
from ablations.cli.options import FAILED, NOT_FINISHED
from ablations.errors import AblationsError
from ablations.terminal.screen import Screen
from scalerl.errors import ScaleRLError

app = typer.Typer(
    name="platform",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = {
    "Train": (run.sweep, run.train, jobs.cancel, jobs.retry),
    "Results": (follow.status, follow.logs, read.fit, read.compare, read.report, forecast.forecast),
    "Before it is paid for": (design.design, check.check, devices.plan, reproduce.reproduce, doctor.doctor),
    "The home folder": (shelf.list, shelf.show, shelf.diff, shelf.delete, move.rename, move.export, move.import_),
    "Pages and MLflow": (serve.dashboard, serve.mlflow, serve.sync),
}
"""In the order of `--help`, by what they are for."""
for purpose, commands in COMMANDS.items():
    for command in commands:
        # `import` is a word of Python's.
        app.command(command.__name__.rstrip("_"), rich_help_panel=purpose)(command)


def show_version(is_asked: bool) -> None:
    """The package's version and the commit of its code, then nothing else."""
    if is_asked:
        from ablations import __version__
        from ablations.pools.code_version import code_version

        print(f"platform {__version__}, code {code_version()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show version and code, and exit.")
    ] = False,
) -> None:
    """Ablation studies of reinforcement learning for language models: one YAML file in, a verdict out."""


def main() -> None:
    """The console script: one message and the exit code of whatever the platform, the trainer or the system raises."""
    try:
        app()
    except (AblationsError, ScaleRLError) as error:
        complain(error.advice, "stopped" if error.exit_code == NOT_FINISHED else "error")
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(FAILED)
    except OSError as error:
        complain(f"{error.filename or 'the system'}: {error.strerror or error}")
        sys.exit(FAILED)


def complain(message: str, head: str = "error") -> None:
    """One message on standard error."""
    Screen(stderr=True, soft_wrap=True).print(f"{head}: {message}", markup=False, highlight=False, style="red")
