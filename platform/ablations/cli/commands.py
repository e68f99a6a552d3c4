"""The commands by purpose. A command's module is imported once the command is named: until then, for the list of
commands in the help and in the shell's completion, its docstring is read from the source.
"""

import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

PURPOSES = {
    "From a file to a verdict": (
        "new.new",
        "check.check",
        "run.sweep",
        "follow.status",
        "read.compare",
        "read.report",
        "serve.dashboard",
        "doctor.doctor",
    ),
    "More: train": ("run.train", "follow.logs", "jobs.cancel", "jobs.retry"),
    "More: results": ("read.fit", "read.paper", "forecast.forecast", "ladder.ladder", "audit.audit"),
    "More: before training": ("design.design", "plan.plan", "reproduce.reproduce"),
    "More: the home folder": (
        "contents.list",
        "contents.show",
        "contents.diff",
        "note.note_",
        "contents.delete",
        "move.export",
        "move.import_",
    ),
    "More: MLflow": ("serve.mlflow", "serve.sync"),
    "More: agents": ("keep.campaign", "keep.keep", "serve.mcp"),
}
"""Module and function of each command by purpose, in the order of `--help`: first the eight that every study needs."""
# `import` is a Python keyword, and `note` a function of searches.
PLACE_OF = {
    place.partition(".")[2].rstrip("_"): (purpose, *place.split("."))
    for purpose, places in PURPOSES.items()
    for place in places
}
"""Purpose, module and function by the name of the command."""


class PlatformCommand(TyperCommand):
    """A command whose help does not mark switches as `<bool>`, which leaves more width for their descriptions."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters; a switch has no type to show."""
        params = super().get_params(ctx)
        for one in params:
            if getattr(one, "is_flag", False):
                one.metavar = ""
        return params


class Commands(TyperGroup):
    """All commands, each described by its docstring, and imported once it is the one to run or to complete."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, by purpose."""
        return list(PLACE_OF)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The description of a command; None if there is no such command."""
        return described(cmd_name) if cmd_name in PLACE_OF else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Name, command and arguments; an unknown name is refused with the nearest ones."""
        if args[0] in PLACE_OF:
            return args[0], imported(args[0]), args[1:]
        self.commands = {name: described(name) for name in PLACE_OF}
        return super().resolve_command(ctx, args)


def described(name: str) -> TyperCommand:
    """The command without its options and arguments."""
    purpose, module, function = PLACE_OF[name]
    return PlatformCommand(name, help=unwrapped(_docstrings(module)[function]), rich_help_panel=purpose)


def imported(name: str) -> Any:
    """The command as Typer builds it from its function."""
    purpose, module, function = PLACE_OF[name]
    alone, callback = typer.Typer(add_completion=False, pretty_exceptions_enable=False), _function(module, function)
    documented = unwrapped(callback.__doc__ or "")
    alone.command(name, rich_help_panel=purpose, cls=PlatformCommand, help=documented)(callback)
    return get_command(alone)


def _function(module: str, function: str) -> Any:
    return getattr(import_module(f"ablations.cli.{module}"), function)


@cache
def _docstrings(module: str) -> dict[str, str]:
    """The docstring of every function of a module of this folder."""
    tree = ast.parse((Path(__file__).parent / f"{module}.py").read_text(encoding="utf-8"))
    return {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)}


def unwrapped(docstring: str) -> str:
    """The paragraphs of a docstring, each on one line, so that the terminal breaks them at its own width."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in docstring.strip().split("\n\n"))
