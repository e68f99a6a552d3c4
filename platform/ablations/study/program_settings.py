"""What a study's program is given for the settings of a known trainer, and where each was written.

In order, the later counts: files that the command names, the configuration, the words of a shell script and of the
command, the overrides of a variant, and what a Python script passes to the trainer's configuration as plain values.
"""

import ast
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Any

import yaml

from ablations.errors import AblationsError
from ablations.files.source import MAX_BYTES, MAX_DEPTH
from ablations.logs.trainer_defaults import DEFAULTS, STARTED_BY
from ablations.study.needed_packages import script_of
from ablations.text import setting_text
from scalerl.plain_json import parsed_json
from scalerl.readable_folders import refuse_unreadable
from scalerl.recipe.command import NEW, PLACEHOLDER, CommandRecipe

HYDRA = re.compile(r"\+{0,2}([A-Za-z_][\w./]*)=(.*)", re.DOTALL)
FLAG = re.compile(r"--([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
Given = tuple[Any, str]
"""A value, and where it was written."""
NO_YAML = (yaml.YAMLError, ValueError, RecursionError)
"""What PyYAML raises: ValueError for the day 2025-13-40, RecursionError for what is nested too deeply."""
NO_LITERAL = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)
"""What `ast.literal_eval` raises."""
OWN_DEFAULTS = ("_self_", "ppo_trainer", "ppo_megatron_trainer")
"""Entries of a Hydra defaults list that add only the trainer's own defaults."""


class Unreadable(AblationsError):
    """A setting whose value only the program knows, or that its trainer does not have."""


@dataclass(frozen=True, kw_only=True)
class ProgramSettings:
    """The settings of a known trainer in one variant of a study."""

    trainer: str
    given: Mapping[str, Given]
    """By dotted path."""
    script: str
    """Code of the Python script and of its other files, without comments and docstrings; empty if there are none."""
    folder: Path
    is_whole: bool = True
    """False if the program also reads a configuration that is not read here: what is not given may be set there."""

    def find(self, name: str) -> Given | None:
        """What was given for a setting; scripts that use TRL may read it at any depth of a configuration."""
        paths = [path for path in self.given if path == name or (self.trainer == "trl" and path.endswith(f".{name}"))]
        if len({repr(self.given[path][0]) for path in paths}) > 1:
            raise Unreadable(name)
        return self.given[paths[0]] if paths else None

    def value(self, name: str) -> Any:
        """A setting, by default the trainer's; Unreadable if the script may set it in a way that cannot be read."""
        if found := self.find(name):
            if "$" in str(found[0]):
                raise Unreadable(name)
            return found[0]
        if not self.is_whole or name not in DEFAULTS[self.trainer] or re.search(rf"\b{name}\b", self.script):
            raise Unreadable(name)
        return DEFAULTS[self.trainer][name]

    def number(self, name: str, otherwise: str = "") -> float:
        """A setting that is a finite number, or if it is None another; Unreadable for anything else."""
        value = self.value(name)
        if value is None and otherwise:
            return self.number(otherwise)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
            raise Unreadable(name)
        return value

    def shown(self, name: str) -> str:
        """A setting for a person: `save_steps 100 (grpo.yaml)`."""
        value, where = self.find(name) or (self.value(name), "by default")
        text = setting_text(value)
        return f"{name} {'{seed}' if text == '<seed>' else text} ({where})"


def settings_of_program(recipe: CommandRecipe, reference: str, sweep_file: str) -> ProgramSettings | None:
    """The settings of a variant, whose configuration is the file `reference`; None if its trainer is not known."""
    folder = Path(recipe.folder)
    of_shells = {one: _shell_words(folder / one) for one in recipe.command if one.endswith(".sh")}
    words = (*(word for one in of_shells.values() for word in one), *recipe.command)
    found = script_of(recipe.command, folder)
    paths = dict.fromkeys(
        (*(found.paths if found else ()), *(folder / one for one in recipe.code if recipe.code != "git"))
    )
    scripts = {path: text for path in paths if path.suffix == ".py" and (text := _text(path))}
    script = "\n".join(map(_code, scripts.values()))
    trainer = next((one for one in STARTED_BY if _is_used(one, recipe, words, script)), None)
    if trainer is None:
        return None
    given: dict[str, Given] = {}
    named = [word for before, word in pairwise(words) if before in ("--config", "@") and word != "{config}"]
    for word in named:
        given |= _flat(_file(folder / word) or {}, word, folder)
    given |= _flat(recipe.configuration, reference, folder)
    for where, own in {**of_shells, "trainer.command": recipe.command}.items():
        given |= _flat(_arguments(own), where, folder)
    given |= _flat({path.removeprefix(NEW): one for path, one in recipe.overrides.items()}, sweep_file, folder)
    for path, text in scripts.items():
        given |= _literals(text, path.name, folder)
    is_whole = all(_file(folder / word) is not None for word in named) and not _adds_files(given, words)
    return ProgramSettings(trainer=trainer, given=given, script=script, folder=folder, is_whole=is_whole)


def _adds_files(given: Mapping[str, Given], words: Sequence[str]) -> bool:
    """True if Hydra puts the configuration together from files of the user's own."""
    listed = given.get("defaults", ([], ""))[0]
    is_own = any(path.startswith("defaults.") for path in given) or not isinstance(listed, list)
    is_own |= any(one not in OWN_DEFAULTS for one in listed or ())
    return is_own or any(re.match(r"(--config-(path|dir)|-cp|-cd)(=|$)", word) for word in words)


def _is_used(trainer: str, recipe: CommandRecipe, words: Sequence[str], script: str) -> bool:
    """True if a program is known to use the trainer; for TRL, to use it for GRPO."""
    is_grpo = "grpo" in words or re.search(r"\bGRPO(Config|Trainer)\b", script) is not None
    if trainer == "trl" and not is_grpo and (script or "num_generations" not in recipe.settings):
        return False
    is_imported = re.search(rf"^\s*(from|import) {trainer}\b", script, re.MULTILINE) is not None
    is_named = recipe.log is not None and recipe.log.trainer == trainer
    return is_imported or is_named or any(map(STARTED_BY[trainer].fullmatch, words))


def _shell_words(script: Path) -> list[str]:
    """The words of a shell script, with the variables that it sets; none if only a shell can read it."""
    known: dict[str, str] = {}
    words: list[str] = []
    with suppress(ValueError):
        for written in shlex.split(_text(script).replace("\\\n", " "), comments=True):
            words.append(Template(written).safe_substitute(known))
            if (variable := HYDRA.fullmatch(words[-1])) and variable[1].isidentifier():
                known[variable[1]] = variable[2]
    return words


def _arguments(words: Sequence[str]) -> dict[str, Any]:
    """Settings among words: `a.b=1`, `--a.b 1`, `--a-b=1`, `--a` for true. Values are YAML, which Hydra and TRL nearly
    read, with `<seed>` for the placeholder `{seed}`."""
    read: dict[str, Any] = {}
    for word, after in pairwise([*words, "--"]):
        if found := FLAG.fullmatch(word) or HYDRA.fullmatch(word):
            text = found[2] if found[2] is not None else "true" if after.startswith("--") else after
            text = PLACEHOLDER.sub(lambda one: f"<{one[1]}>" if one[1] else one[0][0], text)
            read[found[1].replace("-", "_")] = text
            with suppress(*NO_YAML):
                read[found[1].replace("-", "_")] = yaml.safe_load(text)
    return read


def _flat(tree: Mapping[str, Any], where: str, folder: Path, above: str = "") -> dict[str, Given]:
    """The leaves of a configuration by dotted path, also of the file that `deepspeed` names and of mappings as text."""
    found: dict[str, Given] = {}
    for name, value in tree.items():
        if isinstance(value, str) and name == "deepspeed":
            value = _file(folder / value) or {}
        elif isinstance(value, str) and value.startswith("{"):
            with suppress(*NO_YAML):
                value = yaml.safe_load(value)
        elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            value = {str(place): one for place, one in enumerate(value)}
        if isinstance(value, dict) and above.count(".") < MAX_DEPTH:
            found |= _flat(value, where, folder, f"{above}{name}.")
        else:
            found[f"{above}{name}"] = value, where
    return found


def _file(path: Path) -> dict[str, Any] | None:
    """A configuration in YAML, JSON or TOML; None if it cannot be read."""
    return _tree(text, path.suffix) if (text := _text(path)) else None


@lru_cache(maxsize=64)  # all variants of a study name the same files
def _tree(text: str, suffix: str) -> dict[str, Any] | None:
    with suppress(*NO_YAML):
        read = {".toml": tomllib.loads, ".json": parsed_json}.get(suffix, yaml.safe_load)(text)
        return read if isinstance(read, dict) else None
    return None


def _text(path: Path) -> str:
    """The text of a file; empty if it is none, too long for a person to have written, or cannot be read."""
    with suppress(OSError, ValueError):
        refuse_unreadable(path)
        if path.is_file() and path.stat().st_size <= MAX_BYTES:
            return path.read_text(errors="replace")
    return ""


@lru_cache(maxsize=64)
def calls_in(script: str, *names: str) -> tuple[ast.Call, ...]:
    """The calls of these functions or classes in a Python script; none if it cannot be parsed."""
    with suppress(SyntaxError, ValueError, RecursionError):
        calls = [one for one in ast.walk(ast.parse(script)) if isinstance(one, ast.Call)]
        return tuple(one for one in calls if ast.unparse(one.func).rpartition(".")[2] in names)
    return ()


@lru_cache(maxsize=64)
def _code(script: str) -> str:
    """A Python script without comments and texts that do nothing; as it is if it cannot be parsed."""
    with suppress(SyntaxError, ValueError, RecursionError):
        tree = ast.parse(script)
        tree.body = [
            one for one in tree.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        ]
        return ast.unparse(tree)
    return script


def _literals(script: str, file: str, folder: Path) -> dict[str, Given]:
    """The settings that a script passes to its trainer as plain values, unless it passes two that differ."""
    found: dict[str, list[Given]] = {}
    for call in calls_in(script, "GRPOConfig", "LoraConfig"):
        for one in call.keywords:
            with suppress(*NO_LITERAL):
                tree = {one.arg or "": ast.literal_eval(one.value)}
                for path, given in _flat(tree, f"{file}:{one.value.lineno}", folder).items():
                    found.setdefault(path, []).append(given)
    return {path: given[0] for path, given in found.items() if len({repr(value) for value, _ in given}) == 1}
