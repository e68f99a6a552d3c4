"""Every command as Markdown, generated from the commands: the site's page `commands`.

python -m ablations.cli.reference      # the page, in the terminal
"""

import inspect
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from ablations.cli.commands import PLACE_OF, imported

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
WORDS: dict[Any, str] = {bool: "", str: "text", Path: "path", int: "whole number", float: "number"}
COMMANDS_BY_NAME: dict[str, Any] = {name: imported(name) for name in PLACE_OF}
"""Each command as built by Typer, with its parameters."""


def commands_page() -> str:
    return "\n\n".join([COMMANDS_PREAMBLE, *map(section, COMMANDS_BY_NAME)]) + "\n"


def section(name: str) -> str:
    """A command's usage, its docstring, and a row for each argument and option."""
    command = COMMANDS_BY_NAME[name]
    arguments = [usage(one) for one in command.params if one.param_type_name == "argument"]
    call = " ".join(["platform", name, *arguments, "[OPTIONS]"])
    table = ["| argument or option | value | default | meaning |", "|---|---|---|---|", *map(row, command.params)]
    said = inspect.cleandoc(command.callback.__doc__)
    return "\n\n".join([f"## {name}", f"    {call}", said, "\n".join(table)])


def usage(parameter: Any) -> str:
    """A parameter in a usage line: `FILE`, `[SWEEP]`, `[SWEEP]...` if repeatable, `--jobs`, `--watch, -w`."""
    if parameter.param_type_name == "option":
        return ", ".join(parameter.opts)
    name = parameter.metavar or parameter.name.upper()
    return (name if parameter.required else f"[{name}]") + ("..." if parameter.nargs == -1 else "")


def row(parameter: Any) -> str:
    """The parameter's row in the table of its command."""
    is_plain = isinstance(parameter.default, str | int | float) and parameter.default is not False
    default = f"`${parameter.envvar}`" if parameter.envvar else f"`{parameter.default}`" if is_plain else ""
    cells = (f"`{usage(parameter)}`", allowed(parameter), default, parameter.help or "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def allowed(parameter: Any) -> str:
    """The allowed values: `whole number, ≥ 1`, `local` or `slurm`; empty for a switch."""
    kind = parameter.type_descriptor.annotation
    if get_origin(kind) is Literal:
        return " or ".join(f"`{choice}`" for choice in get_args(kind))
    bounds = (("≥", parameter.min), ("≤", parameter.max))
    said = [f"{sign} {bound:g}" for sign, bound in bounds if bound is not None]
    word = WORDS[get_args(kind)[0] if get_origin(kind) is list else kind]
    return ", ".join(filter(None, [word, *said]))


if __name__ == "__main__":
    print(commands_page(), end="")
