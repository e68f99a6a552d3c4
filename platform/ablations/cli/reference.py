"""Every command as Markdown, generated from the commands: `docs/commands.md`.

python -m ablations.cli.reference > docs/commands.md      # make docs
"""

import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from typer.models import ArgumentInfo, OptionInfo

from ablations.cli import app

COMMANDS_PREAMBLE = """\
# Commands

Made by `make docs` from the commands themselves; a test fails if this page is out of date.

`platform COMMAND --help`, or `-h`, prints the same texts. `platform --version` prints the version and the commit of the
code. `platform --install-completion` lets the shell complete commands, options and names of sweeps. Commands work in
one home folder: `--home`, else `ABLATIONS_HOME`, else `./ablation-runs`.

| exit code | meaning |
|---|---|
| 0 | done, or submitted to Slurm |
| 1 | a run failed, no curve has a fit, or the doctor or a check found an error |
| 2 | input, files or machine do not fit; the message names the remedy |
| 3 | not finished, or interrupted; the same command continues |"""
WORDS: dict[Any, str] = {str: "text", Path: "path", int: "whole number", float: "number"}


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One argument or option: `Parameter(name="jobs", annotation=int | None, info=Option(min=1), default=None)`."""

    name: str
    annotation: Any
    info: ArgumentInfo | OptionInfo
    default: Any

    @property
    def is_argument(self) -> bool:
        """True for an argument, which is given by position."""
        return isinstance(self.info, ArgumentInfo)

    def usage(self) -> str:
        """The parameter in a usage line: `FILE`, `[SWEEP]`, `[SWEEP]...` if repeatable, `--jobs`, `--watch, -w`."""
        if self.is_argument:
            name = self.info.metavar or self.name.upper()
            several = "..." if _is_list(self.annotation) else ""
            return (name if self.default is inspect.Parameter.empty else f"[{name}]") + several
        # Typer keeps the first name of an annotated option in place of its default.
        names = [name for name in (self.info.default, *(self.info.param_decls or ())) if isinstance(name, str)]
        return ", ".join(names or [f"--{self.name.replace('_', '-')}"])

    def row(self) -> str:
        """The parameter's row in the table of its command."""
        is_plain = isinstance(self.default, str | int | float) and self.default is not False
        default = f"`{self.default}`" if is_plain else ""
        default = f"`${self.info.envvar}`" if self.info.envvar else default
        cells = (f"`{self.usage()}`", value_of(self.annotation, self.info), default, self.info.help or "")
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def commands_page() -> str:
    """The whole page as Markdown."""
    sections = [
        section(one.name or one.callback.__name__, one.callback) for one in app.registered_commands if one.callback
    ]
    return "\n\n".join([COMMANDS_PREAMBLE, *sections]) + "\n"


def section(name: str, command: Callable[..., Any]) -> str:
    """A command's usage, its docstring, and a row for each argument and option."""
    parameters = list(parameters_of(command))
    call = ["platform", name, *(one.usage() for one in parameters if one.is_argument), "[OPTIONS]"]
    table = [
        "| argument or option | value | default | meaning |",
        "|---|---|---|---|",
        *(one.row() for one in parameters),
    ]
    said = inspect.cleandoc(command.__doc__ or "")
    return "\n\n".join([f"## {name}", f"    {' '.join(call)}", said, "\n".join(table)])


def parameters_of(command: Callable[..., Any]) -> Iterator[Parameter]:
    """The arguments and options of a command, in the order of `--help`."""
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        annotation, info = get_args(parameter.annotation)
        assert isinstance(info, ArgumentInfo | OptionInfo), f"{command.__name__}: {name} has no typer annotation"
        yield Parameter(name=name, annotation=annotation, info=info, default=parameter.default)


def value_of(annotation: Any, info: ArgumentInfo | OptionInfo) -> str:
    """The allowed values: `whole number, ≥ 1`, `local` or `slurm`; empty for a switch."""
    bounds = [f"{sign} {bound:g}" for sign, bound in (("≥", info.min), ("≤", info.max)) if bound is not None]
    return ", ".join([*words_of(annotation), *bounds])


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(_is_list(one) for one in get_args(annotation))


def words_of(annotation: Any) -> Iterator[str]:
    """The type as text."""
    if get_origin(annotation) is Literal:
        yield " or ".join(f"`{choice}`" for choice in get_args(annotation))
    elif get_origin(annotation) in (Annotated, list):
        yield from words_of(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        yield from (word for argument in get_args(annotation) for word in words_of(argument))
    elif annotation not in (bool, types.NoneType):
        yield WORDS[annotation]


if __name__ == "__main__":
    print(commands_page(), end="")
