"""The commands of `platform`. Each imports what is slow when it runs, so `sweep --dry-run` starts fast.

options.py   options and arguments of several commands; budget.py: how --budget is read
named_sweeps.py  the sweeps and variants that a name refers to
commands.py  the commands by purpose, each imported once it is named
output.py    what the commands print; exit_codes.py: their exit codes; unfinished.py: that of a sweep
run.py       sweep, train
dry_run.py   the runs and costs of a sweep, before training
training.py  where and how the runs of a sweep train: here, on Slurm, on Ray
new.py       new: a sweep file to start from
check.py     check, and its quick part, which begins every sweep
plan.py      plan: the memory of each device of a cluster
jobs.py      cancel, retry
follow.py    status, logs
read.py      fit, compare, report; shown_comparison.py: what compare prints
forecast.py  forecast
keep.py      campaign, keep: a loop that improves by itself
ladder.py    ladder: the same study at several scales
design.py    design, and its part of a dry run
reproduce.py reproduce
studies.py   reproduce --list
contents.py  list, show, diff, delete: the contents of the home folder, and the recipes and scales
note.py      note: notes and tags on sweeps, variants and runs
move.py      export, import: sweeps to another home folder, and their curves to anyone
serve.py     dashboard, mlflow, sync; mcp: a server for agents
doctor.py    doctor; diagnose.py: its findings about a run
audit.py     audit: kept answers judged a second time
mcp_tools.py the tools of mcp: the commands with --json; mcp_arguments.py: their arguments
background.py a sweep that outlives the process that starts it
findings.py  what check and doctor find, on a terminal and for scripts
reference.py every command as Markdown, for the site
"""

import os
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any, NoReturn

import typer

from ablations.cli.commands import Commands
from ablations.cli.exit_codes import FAILED, NOT_FINISHED
from ablations.errors import AblationsError, FileError
from ablations.terminal.encoding import replace_what_cannot_be_printed
from scalerl.credentials import without_secrets
from scalerl.errors import ScaleRLError

app = typer.Typer(
    name="platform",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_version(is_asked: bool) -> None:
    """Print the versions of the package and of its JSON and the commit of its code, then exit."""
    if is_asked:
        from ablations import __version__
        from ablations.cli.output import SCHEMA
        from ablations.pools.code_version import code_version

        print(f"platform {__version__}, code {code_version()}, JSON schema {SCHEMA}")
        raise typer.Exit


@app.callback()
def whole_command(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show versions and code, and exit.")
    ] = False,
) -> None:
    """Ablation studies of reinforcement learning for language models: one YAML file in, a verdict out."""


INTERRUPTED = 130
"""The exit code that Typer gives some commands on Ctrl-C."""
OTHER_WORDS = {"--baseline": "--reference", "--allow-sweeps": "--most-compute"}
"""Options by the names that people try for them."""
UsageProblem: Any = typer.BadParameter.__base__
"""Typer's error for an unknown option or a missing argument, which it does not export."""


def main() -> None:
    """The console script: one message and the exit code for any error of the platform, the trainer or the system.

    With `--json` the message is on standard error, and as a JSON document on standard output.
    """
    as_json = "--json" in sys.argv
    replace_what_cannot_be_printed(sys.stdout, sys.stderr)
    try:
        code = app(standalone_mode=False)  # Typer would print problems of the usage by itself, and only in words
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code)
    except (typer.Abort, KeyboardInterrupt):
        fail("interrupted", NOT_FINISHED, AblationsError("interrupted"), as_json=as_json)
    except (AblationsError, ScaleRLError) as error:
        fail(error.advice, error.exit_code, error, as_json=as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(FAILED)
    except OSError as error:
        fail(f"{error.filename or 'the system'}: {error.strerror or error}", FAILED, error, as_json=as_json)
    except UsageProblem as error:
        if not error.format_message():  # without a command: the help has been shown
            sys.exit(error.exit_code)
        fail(usage_message(error), error.exit_code, error, as_json=as_json)


def usage_message(error: Any) -> str:
    """What Typer says of a wrong usage, and the help that says what would be right."""
    command = "platform" if error.ctx is None else error.ctx.command_path
    message = error.format_message().replace("Value error, ", "").rstrip(".")
    if (name := OTHER_WORDS.get(asked := getattr(error, "option_name", ""))) and has_option(error.ctx, name):
        message = f"No such option: {asked}; the option is called {name}"
    what = "all commands" if message.startswith("No such command") else "its options"
    joined = f"{message} For" if message.endswith("?") else f"{message}; for"
    return f"{joined} {what}, run `{command} --help`"


def has_option(context: Any, name: str) -> bool:
    """True if the command of this context has an option of this name."""
    return context is not None and any(name in one.opts for one in context.command.params)


def fail(message: str, exit_code: int, error: Exception, *, as_json: bool) -> NoReturn:
    """Print one message, also as JSON unless the result is already printed, and exit."""
    from ablations.cli.output import has_printed_json, print_json
    from ablations.terminal.screen import Screen

    head, message = "stopped" if exit_code == NOT_FINISHED else "error", without_secrets(message)
    Screen(stderr=True).say(f"{head}: {message}", style="red")
    if as_json and not has_printed_json():
        with suppress(BrokenPipeError):
            print_json(error_document(message, exit_code, error))
    sys.exit(exit_code)


def error_document(message: str, exit_code: int, error: BaseException | None = None) -> dict[str, Any]:
    """An error as plain data; a `FileError` also gives the place of each of its problems.

    >>> error_document("unknown sweep 'lo'", 2)
    {'error': {'message': "unknown sweep 'lo'", 'exit_code': 2}}
    """
    said: dict[str, Any] = {"message": message, "exit_code": exit_code}
    if isinstance(error, FileError):
        said["places"] = [
            asdict(problem.place) | {"found": problem.found, "right": problem.right} for problem in error.problems
        ]
    return {"error": said}
