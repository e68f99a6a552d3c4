"""The command line and the environment of a program's run: a template filled with one run's values.

>>> command_line(recipe, seed=0, budget=8000.0, folder=folder)
['/usr/bin/python3', 'train.py', 'lr=0.1', 'seed=0']
"""

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from scalerl.recipe.command import NEW, PLACEHOLDER, CommandRecipe, OverridesAs
from scalerl.run.run_folder import RunFolder

CONFIG_FILE = "config.yaml"
HYDRA_WORD = re.compile(r"[A-Za-z_./\-][A-Za-z0-9_./:\-+%@]*")
"""Text that Hydra reads as itself without quotes, unless it is one of HYDRA_VALUES."""
HYDRA_VALUES = frozenset(("true", "false", "null", "nan", "inf", "-inf"))


def command_line(recipe: CommandRecipe, *, seed: int, budget: float, folder: RunFolder) -> list[str]:
    """The program and its arguments, with every placeholder filled."""
    values = values_of_run(seed=seed, budget=budget, folder=folder)
    line: list[str] = []
    for argument in recipe.command:
        if argument == "{overrides}":
            line += override_arguments(recipe.overrides, recipe.overrides_as)
        else:
            line.append(fill_placeholders(argument, values))
    return line


def values_of_run(*, seed: int, budget: float, folder: RunFolder) -> dict[str, str]:
    """Value of each placeholder except `{overrides}`."""
    return {
        "python": sys.executable,
        "config": str(folder.path / CONFIG_FILE),
        "seed": str(seed),
        "budget": number_text(budget),
        "folder": str(folder.work),
    }


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    """A text with every placeholder filled."""
    return PLACEHOLDER.sub(lambda found: values[found[1]] if found[1] else found[0][0], text)


def override_arguments(overrides: dict[str, Any], form: OverridesAs) -> list[str]:
    """The overrides as arguments; none if they are passed as environment variables."""
    if form == "hydra":
        return [f"{path}={hydra_text(value)}" for path, value in overrides.items()]
    if form == "variables":
        return []
    return [text for path, value in overrides.items() for text in (_flag(path, form), plain_text(value))]


def variable_name(path: str) -> str:
    """The environment variable of an override: `A_B` for `a.b`."""
    return re.sub(r"[^A-Za-z0-9]", "_", path.removeprefix(NEW)).upper()


def environment_of_run(recipe: CommandRecipe, *, seed: int, budget: float, folder: RunFolder) -> dict[str, str]:
    """The environment of the program: this process's, plus the variables that `ablations.log` reads."""
    overrides = recipe.overrides if recipe.overrides_as == "variables" else {}
    return {
        **os.environ,
        **{variable_name(path): plain_text(value) for path, value in overrides.items()},
        "ABLATIONS_LOG": str(folder.metrics),
        "ABLATIONS_FOLDER": str(folder.work),
        "ABLATIONS_SEED": str(seed),
        "ABLATIONS_BUDGET": number_text(budget),
        "ABLATIONS_SETTINGS": json.dumps(recipe.settings),
    }


def number_text(number: float) -> str:
    """A number for a command line: `8000`, `0.5`; whole numbers without a point."""
    return str(int(number)) if number == int(number) else repr(number)


def plain_text(value: Any) -> str:
    """A value as one argument: text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def hydra_text(value: Any) -> str:
    """A value in the grammar of Hydra's overrides: `0.1`, `null`, `[a,b]`, `'two words'`."""
    match value:
        case str():
            if HYDRA_WORD.fullmatch(value) and value.lower() not in HYDRA_VALUES:
                return value
            # Hydra takes a backslash as an escape only before a quote, and before another such backslash.
            quoted = re.sub(r"(\\*)(')", lambda found: found[1] * 2 + r"\'", value)
            return "'" + re.sub(r"(\\+)$", lambda found: found[1] * 2, quoted) + "'"
        case list():
            return "[" + ",".join(map(hydra_text, value)) + "]"
        case dict():
            return "{" + ",".join(f"{hydra_text(key)}:{hydra_text(part)}" for key, part in value.items()) + "}"
    return json.dumps(value)


def _flag(path: str, form: OverridesAs) -> str:
    name = path.removeprefix(NEW)
    return f"--{name.replace('.', '_')}" if form == "flags_with_underscores" else f"--{name}"
