"""The command line and the environment of a program's run: a template filled with one run's values.

>>> command_line(recipe, seed=0, budget=8000.0, folder=folder)
['/usr/bin/python3', 'train.py', 'lr=0.1', 'seed=0']
"""

import json
import math
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

import yaml

from scalerl.recipe.command import NEW, PLACEHOLDER, CommandRecipe, OverridesAs
from scalerl.run.run_folder import RunFolder

CONFIG_FILE, OVERRIDES = "config.yaml", "{overrides}"
YAML_WORD = re.compile(r"[A-Za-z_][^\n]*")
"""Text that YAML may write without quotes, unless it is a word such as `on`, which PyYAML quotes."""
HYDRA_WORD = re.compile(r"[A-Za-z_/][A-Za-z0-9_./\-]*")
"""Text that Hydra reads literally without quotes, unless it is one of HYDRA_VALUES."""
HYDRA_VALUES = frozenset(("true", "false", "null", "nan", "inf"))
HYDRA_KEY = re.compile(r"[A-Za-z0-9_/\-+.$%*@?|\\:=,()\[\]{} \t]+")
"""A key of a mapping that Hydra reads, with its marks escaped, unless it reads it as a value."""
HYDRA_NUMBER = re.compile(r"[+-]?((\d[\d_]*(\.[\d_]*)?|\.\d[\d_]*)(e[+-]?\d[\d_]*)?|inf|nan)", re.IGNORECASE)


def command_line(recipe: CommandRecipe, *, seed: int, budget: float, folder: RunFolder) -> list[str]:
    """The program and its arguments, with every placeholder filled."""
    values = values_of_run(seed=seed, budget=budget, folder=folder)
    line: list[str] = []
    for argument in recipe.command:
        if argument == OVERRIDES:
            line += override_arguments(recipe.overrides, recipe.overrides_as)
        else:
            line.append(fill_placeholders(argument, values))
    return line


def config_text(settings: Mapping[str, Any]) -> str:
    """The configuration as YAML that means the same to readers of YAML 1.1 and 1.2, such as PyYAML and OmegaConf."""
    return yaml.dump(dict(settings), Dumper=_EitherYaml, sort_keys=False, allow_unicode=True)


class _EitherYaml(yaml.SafeDumper):
    """Quotes texts such as `1e-3` and `0o17`, which only one of the two takes for a number."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """A text, without quotes only if it begins as a word."""
        style = None if YAML_WORD.fullmatch(text) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_EitherYaml.add_representer(str, _EitherYaml.represent_text)


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


def override_arguments(overrides: Mapping[str, Any], form: OverridesAs) -> list[str]:
    """The overrides as arguments; none if they are passed as environment variables."""
    if form == "variables":
        return []
    passed = overrides_passed(overrides, form).values()
    if form == "hydra":
        return [f"{name}={text}" for name, text in passed]
    # argparse takes a text such as -1e-5 for another option, unless it is part of this one.
    words = ([f"{name}={text}"] if text.startswith("-") else [name, text] for name, text in passed)
    return [word for pair in words for word in pair]


def overrides_passed(overrides: Mapping[str, Any], form: OverridesAs) -> dict[str, tuple[str, str]]:
    """Name and text of each override, by its path: `("--a.b", "1")`, `("A_B", "1")`.

    Raises ValueError for a value that cannot be passed in this form.
    """
    text_of = hydra_text if form == "hydra" else plain_text
    return {path: (_name(path, form), _passable(text_of(value))) for path, value in overrides.items()}


def _name(path: str, form: OverridesAs) -> str:
    if form == "hydra":
        return path
    name = path.removeprefix(NEW)
    if form == "variables":
        return re.sub(r"[^A-Za-z0-9]", "_", name).upper()
    return f"--{name.replace('.', '_')}" if form == "flags_with_underscores" else f"--{name}"


def _passable(text: str) -> str:
    """The text unchanged; ValueError if no process can get it."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{text!r} has a character that cannot be passed to a program; remove it")
    return text


def environment_of_run(recipe: CommandRecipe, *, seed: int, budget: float, folder: RunFolder) -> dict[str, str]:
    """The environment of the program: this process's, plus the variables that `ablations.log` reads."""
    overrides = recipe.overrides if recipe.overrides_as == "variables" else {}
    return {
        **os.environ,
        **dict(overrides_passed(overrides, "variables").values()),
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
    """A value as one argument: text unchanged, a number that is not finite as `inf`, `-inf` or `nan`, anything else as
    JSON.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
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
            return "{" + ",".join(f"{_hydra_key(key)}:{hydra_text(part)}" for key, part in value.items()) + "}"
    return plain_text(value)


def _hydra_key(key: str) -> str:
    """A key of a mapping inside a value, for which Hydra has no quotes."""
    if not HYDRA_KEY.fullmatch(key) or HYDRA_NUMBER.fullmatch(key) or key.lower() in HYDRA_VALUES:
        raise ValueError(
            f"Hydra cannot read {key!r} as the key of a mapping; rename it, or let the program read {{config}}"
        )
    return re.sub(r"([\\()\[\]{}:=, \t])", r"\\\1", key)
