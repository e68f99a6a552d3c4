"""The commands of `platform`. Each imports what it needs when it runs: `--help` and `sweep --dry-run` start at once.

    options.py   what commands share: options, sweeps by name, output
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
    serve.py     dashboard, mlflow, sync
    doctor.py    doctor
    reference.py every command as a page: docs/commands.md

Exit codes: 0 done, or submitted to Slurm; 1 some run failed, no curve has a fit, or the doctor or a check found an
error; 2 the input was wrong; 3 not finished, or interrupted.
"""

import os
import sys

import typer
from rich.console import Console

from ablations.cli import check, design, devices, doctor, follow, forecast, jobs, read, run, serve
from ablations.cli.options import FAILED, WRONG_INPUT
from ablations.errors import AblationsError
from scalerl.run.errors import CannotResume

app = typer.Typer(
    name="platform",
    help="Ablation studies of reinforcement learning for language models: one YAML file in, a verdict out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    *(run.sweep, run.train),
    *(jobs.cancel, jobs.retry),
    *(follow.status, follow.logs, read.fit, read.compare, read.report),
    forecast.forecast,
    *(design.design, check.check, devices.plan),
    doctor.doctor,
    *(serve.dashboard, serve.mlflow, serve.sync),
):
    app.command()(command)


def main() -> None:
    """The console script: what a user can put right is one message and exit code 2, a failing machine exit code 1."""
    try:
        app()
    except (AblationsError, CannotResume) as error:
        complain(str(error))
        sys.exit(WRONG_INPUT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(FAILED)
    except OSError as error:
        complain(f"{error.filename or 'the system'}: {error.strerror or error}")
        sys.exit(FAILED)


def complain(message: str) -> None:
    """One message on standard error."""
    Console(stderr=True, soft_wrap=True).print(f"error: {message}", markup=False, highlight=False, style="red")
