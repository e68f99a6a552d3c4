"""The page of commands: current, and every option with its name, its values and its meaning."""

import re
import subprocess
import sys

import pytest
from places import REPOSITORY
from typer.testing import CliRunner

from ablations.cli import app
from ablations.cli.reference import commands_page

PAGE = REPOSITORY / "docs" / "commands.md"
COMMANDS = [one.name or one.callback.__name__ for one in app.registered_commands if one.callback is not None]


def section(command):
    """The part of the page that is about a command."""
    return commands_page().split(f"\n## {command}\n")[1].split("\n## ")[0]


def test_the_page_in_docs_is_what_the_commands_say():
    assert PAGE.read_text() == commands_page(), "run `make docs`"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_of_the_page_are_those_of_help(command):
    printed = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    named = {option for line in printed.splitlines() for option in re.findall(r"^\W+(--[a-z][a-z0-9-]*)", line)}
    on_page = set(re.findall(r"--[a-z][a-z0-9-]*", " ".join(re.findall(r"^\| `([^`]*)`", section(command), re.M))))
    assert named - {"--help"} == on_page


def test_arguments_choices_bounds_and_defaults_read_as_they_are_taken():
    sweep = section("sweep")
    assert "    platform sweep FILE [OPTIONS]" in sweep
    assert "| `--executor` | `local` or `slurm` or `ray` | `local` |" in sweep
    assert "| `--jobs` | whole number, ≥ 1 |  |" in sweep
    assert "| `--dry-run` |  |  | Show the runs and stop. |" in sweep
    assert "    platform status [SWEEP] [OPTIONS]" in section("status")
    assert "| `--watch, -w` |" in section("status")
    assert "| `--seed` | whole number, ≥ 0 | `0` |" in section("train")
    assert "| `--port` | whole number, ≥ 1, ≤ 65535 | `8501` |" in section("dashboard")


def test_the_page_is_made_without_torch():
    code = "import ablations.cli.reference as r, sys; r.commands_page(); print('torch' in sys.modules)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "False"
