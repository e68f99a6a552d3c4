"""A W&B sweep file, recognised and answered with the sweep file that says the same here.

>>> print(as_sweep_file({"program": "train.py", "method": "grid", "parameters": {"lr": {"values": [0.1, 0.2]}}}, "a"))
name: a
trainer:
  type: command
  command: ['{python}', train.py, '{overrides}']
...
grid:
  lr: [0.1, 0.2]
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from ablations.files.source import Source

WANDB_KEYS = ("method", "program", "command", "metric", "early_terminate")
"""Keys of a W&B sweep file beside `parameters` that no sweep file here has."""
WANDB_WORDS = {"${interpreter}": "{python}", "${args}": "{overrides}", "${args_no_hyphens}": "{overrides}"}
"""Words of a W&B command, and the placeholder of a command here."""
WANDB_FILLED = re.compile(r"\$\{(interpreter|program|args|args_no_hyphens|env)\}")
"""Words of a W&B command for which there is one here."""
WANDB_COMMAND = ("${interpreter}", "${program}", "${args}")
LARGEST_LOG = 700
"""Limit on the ends of a log-uniform range, which are natural logarithms: e to this power is just a number."""
DEFAULT_TRIALS = 20
"""Trials of a search without `run_cap`."""
WANDB_SAMPLERS = {"bayes": "tpe", "random": "random"}


def is_wandb_sweep(data: Any) -> bool:
    """True for the content of a W&B sweep file."""
    if not isinstance(data, dict) or "reference" in data:
        return False
    return isinstance(data.get("parameters"), dict) and any(mark in data for mark in WANDB_KEYS)


def refuse_wandb_sweep(source: Source, name: str) -> None:
    """Raise FileError for a W&B sweep file, with what it would be here."""
    data = source.data
    if not is_wandb_sweep(data):
        return
    translated, left_out = as_sweep_file(data, name), [*untranslated(data)]
    said = f"\nLeft out: {', '.join(left_out)}." if left_out else ""
    raise source.root.error(
        "a W&B sweep file",
        "here it is this, with the unit in which your program counts compute, and how often it evaluates, for you to "
        f"fill in:\n\n{translated}{said}\ndocs/commands_study.md says how your program logs; with a recipe as the "
        "reference, parameters are settings of the recipe",
    )


def as_sweep_file(data: Mapping[str, Any], name: str) -> str:
    """The sweep file of a W&B sweep file, as YAML."""
    program, words = str(data.get("program") or "train.py"), _command(data)
    filled = [WANDB_WORDS.get(word, word.replace("${program}", program)) for word in words if word != "${env}"]
    trainer = {
        "type": "command",
        "command": filled,
        "code": [program],
        "overrides_as": "hydra" if "${args_no_hyphens}" in words else "flags",
        "compute": "steps",
        "evaluation": {"every": 100},
    }
    space = dict(_dimensions(data["parameters"]))
    fixed = {path: one["choices"][0] for path, one in space.items() if len(one.get("choices", ())) == 1}
    seeds = space.pop("seed", {}).get("choices", [0, 1, 2])
    varied = {path: one for path, one in space.items() if path not in fixed}
    is_grid = data.get("method") == "grid" or all(one.keys() == {"choices"} for one in varied.values())
    search = {"space": varied, "sampler": WANDB_SAMPLERS.get(str(data.get("method")), "tpe")}
    content = {
        "name": re.sub(r"[^A-Za-z0-9._+-]+", "_", name).strip("._+-") or "sweep",
        "trainer": trainer,
        "reference": "none",
        "base": {path: value for path, value in fixed.items() if path != "seed"},
        "grid": {path: one["choices"] for path, one in varied.items() if "choices" in one} if is_grid else {},
        "search": {} if is_grid else search | {"trials": data.get("run_cap", DEFAULT_TRIALS)},
        "seeds": seeds,
        "budget": {"compute": 1000},
    }
    return yaml.safe_dump(
        {key: value for key, value in content.items() if value}, sort_keys=False, default_flow_style=None, width=110
    )


def untranslated(data: Mapping[str, Any]) -> Iterator[str]:
    """The parameters that a search here cannot draw, with their distributions, and the words that only W&B fills."""
    known = {path for path, _ in _dimensions(data["parameters"])}
    for path, one in _leaves(data["parameters"]):
        if path not in known:
            yield f"{path} ({one.get('distribution', 'values are not a list' if 'values' in one else 'no values')})"
        elif "probabilities" in one:
            yield f"probabilities of {path}"
    yield from (f"{word} in the command" for word in _command(data) if "${" in WANDB_FILLED.sub("", word))


def _command(data: Mapping[str, Any]) -> list[str]:
    """The words of the command, also of one that is written as a text."""
    words = data.get("command") or WANDB_COMMAND
    return [str(word) for word in words] if isinstance(words, list | tuple) else str(words).split()


def _dimensions(parameters: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each parameter with its choices or its range, as `search.space` has them."""
    for path, one in _leaves(parameters):
        if "value" in one:
            yield path, {"choices": [one["value"]]}
        elif isinstance(values := one.get("values"), list) and values:
            yield path, {"choices": values}
        elif found := _range(one):
            yield path, found


def _range(one: Mapping[str, Any]) -> dict[str, Any]:
    """A range; empty for a distribution without ends, such as a normal one."""
    ends = [end for end in (one.get("min"), one.get("max")) if isinstance(end, int | float) and abs(end) < math.inf]
    if len(ends) < 2:
        return {}
    low, high = ends
    is_whole = isinstance(low, int) and isinstance(high, int)
    match str(one.get("distribution", "int_uniform" if is_whole else "uniform")):
        case "uniform":
            return {"low": low, "high": high}
        case "int_uniform":
            return {"low": low, "high": high, "step": 1}
        case "q_uniform":
            return {"low": low, "high": high, "step": one.get("q") or 1}
        case "log_uniform_values" | "q_log_uniform_values":
            return {"low": low, "high": high, "log": True}
        case "log_uniform" | "q_log_uniform" if max(abs(low), abs(high)) < LARGEST_LOG:
            return {"low": math.exp(low), "high": math.exp(high), "log": True}
    return {}


def _leaves(parameters: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every parameter with its dotted path; nested ones are inside `parameters` of their own."""
    for name, one in parameters.items():
        inner = one.get("parameters") if isinstance(one, Mapping) else None
        if isinstance(inner, Mapping):
            yield from _leaves(inner, f"{before}{name}.")
        else:
            yield f"{before}{name}", one if isinstance(one, Mapping) else {"value": one}
