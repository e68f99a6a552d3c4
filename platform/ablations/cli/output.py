"""What the commands print."""

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.console import Console

from ablations.cli.exit_codes import WRONG_INPUT
from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.report.documents.blocks import Cell, table_of_rows
from ablations.report.writers.terminal import print_document
from ablations.terminal.own_command import as_called, own_command
from ablations.terminal.screen import Screen
from ablations.terminal.visible import made_visible
from scalerl.credentials import command_without_secrets, without_secrets

SCHEMA = 2
"""Version of all JSON documents. A new key keeps the number; a key that is removed or changes its meaning raises the
number."""
_has_printed_json = False
PIPE_WIDTH = 160


def console(*, stderr: bool = False) -> Screen:
    """A console as wide as the terminal, or wide enough for every table in a file or pipe; shows control characters."""
    out = Screen(stderr=stderr)
    return out if out.is_terminal else Screen(stderr=stderr, width=PIPE_WIDTH)


def tell(text: str, *, end: str = "\n") -> None:
    """Print plain text on standard output and flush; control characters are made visible, passwords are hidden."""
    print(as_called(made_visible(without_secrets(text))), end=end, flush=True)


def print_rows(rows: Sequence[Mapping[str, Cell | str]], **given: Any) -> None:
    """Print a table of at least one row, built by `table_of_rows`."""
    print_document([table_of_rows(rows, name="", **given)], console())


def warn(message: str) -> None:
    """Print a warning on standard error; nothing for an empty message."""
    if message:
        console(stderr=True).say(f"warning: {without_secrets(message)}", style="yellow")


def print_json(data: Any) -> None:
    """Print plain data as JSON; raises ValueError for numbers that JSON lacks."""
    global _has_printed_json
    print(json.dumps(data, indent=1, allow_nan=False), flush=True)
    _has_printed_json = True


def has_printed_json() -> bool:
    """True once this process has printed a JSON document; standard output holds at most one."""
    return _has_printed_json


def ask(question: str, *, without_terminal: str) -> None:
    """Return if the user agrees, else raise typer.Exit; without a terminal, raise AblationsError with this message."""
    if not sys.stdin.isatty():
        raise AblationsError(without_terminal)
    if not typer.confirm(question):
        raise typer.Exit(WRONG_INPUT)


def command_given(home: Home, *, scale: str | None = None, study: str = "") -> str:
    """This command as a plan keeps it, with the home folder that ABLATIONS_HOME chose; passwords are hidden.

    Of a command that trains several scales or studies, the part for this `scale` and this `study`.
    """
    verb, *words = sys.argv[1:] or [""]
    words = [study if study and word == "--all" else word for word in words]
    named = {word.partition("=")[0] for word in words}
    chosen = shlex.split(home.option) if os.environ.get("ABLATIONS_HOME") and "--home" not in named else []
    of_scale = ["--scale", scale] if scale is not None and "--scale" not in named else []
    return command_without_secrets(["platform", verb, *chosen, *words, *of_scale])


def pages_command(home: Home) -> str:
    return f"{own_command()} dashboard {home.option}"


def say_pages(home: Home, out: Console) -> None:
    """Print the dashboard command below a result, but only on a terminal."""
    if out.is_terminal:
        out.print(f"\ndashboard  {pages_command(home)}", soft_wrap=True, highlight=False, markup=False)
