"""A recipe whose trainer is a user's own program: its command, its configuration and the changes of a variant.

trainer:
  type: command
  command: ["{python}", train.py, "{overrides}", "seed={seed}"]
  code: [train.py]
  compute: tokens
  evaluation: {every: 2000}
"""

import copy
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field

from scalerl.frozen import Count, Frozen, Positive, Unit
from scalerl.recipe.file_hash import COMMIT
from scalerl.recipe.resolved import ResolvedRecipe

PLACEHOLDERS = {
    "python": "the interpreter that runs the platform",
    "overrides": "the overrides of the variant, in the form of `overrides_as`; an argument of its own",
    "config": "the path of a YAML file with the whole configuration, overrides included",
    "seed": "the seed",
    "budget": "the compute at which the platform ends the run",
    "folder": "the folder in which the program keeps its files, such as checkpoints",
}
"""Meaning of each `{name}` in a command; `{{` and `}}` are braces."""
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([A-Za-z_]+)\}")
NEW = "+"
"""Mark before the path of an override whose key the configuration lacks."""

OverridesAs = Literal["hydra", "flags", "flags_with_underscores", "variables"]


def _fillable(command: tuple[str, ...]) -> tuple[str, ...]:
    """The template unchanged; ValueError if a placeholder would not be filled."""
    for argument in command:
        for found in PLACEHOLDER.finditer(argument):
            name = found[1]
            if name is not None and name not in PLACEHOLDERS:
                known = ", ".join(f"{{{one}}}" for one in PLACEHOLDERS)
                raise ValueError(
                    f"unknown placeholder {{{name}}} in {argument!r}; placeholders are: {known}; write {{{{{name}}}}} "
                    "for the text itself"
                )
            if name == "overrides" and argument != found[0]:
                raise ValueError(f"{{overrides}} stands for several arguments, but {argument!r} is one; write it alone")
    return command


def _of_run(path: str) -> str:
    """The path unchanged; ValueError if all runs would share it, or a placeholder would not be filled."""
    names = {found[1] for found in PLACEHOLDER.finditer(path)}
    if not names & {"folder", "config"}:
        raise ValueError(
            f"{path!r} would be shared by all runs; begin it with {{folder}}, the folder of the run's files"
        )
    return _fillable((path,))[0]


def _requirement(text: str) -> str:
    """The text unchanged; ValueError if `pip install` would not read it as a requirement."""
    from packaging.requirements import InvalidRequirement, Requirement  # only commands need it

    try:
        Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(
            f"{text!r} is not a requirement that pip understands; write for example trl>=1.16 ({error})"
        ) from None
    return text


class LoggedEvaluation(Frozen):
    """The evaluations that the program logs, for checks, designs and forecasts before a run has any."""

    every: Annotated[Positive, Unit("compute")]
    """Compute between two evaluations."""
    samples: Annotated[Count, Unit("answers per prompt")] = 1
    """Number of answers to each held-out prompt."""


class ProgramOwnLog(Frozen):
    """A log that the program writes in a form of its own; columns and expressions as in `platform compare`."""

    path: Annotated[str, Field(min_length=1), AfterValidator(_of_run)]
    """The file or folder. It begins with `{folder}`, so that each run has its own."""
    trainer: str | None = None
    """Trainer whose metric names the log uses, such as `verl`."""
    gpus: Annotated[Positive, Unit("GPUs")] | None = None
    """With `trainer`: GPUs of a run, so that compute is in GPU-hours."""
    score: str | None = None
    """Held-out pass rate: a column or an expression."""
    compute: str | None = None
    """Compute: a column or an expression."""
    step: str | None = None
    """Step: a column or an expression; by default the file's own."""
    samples: str | None = None
    """Number of generations behind a score: a column, an expression or a number."""


class Program(Frozen):
    """A program of your own that trains: a command, ended when its log reaches the budget."""

    type: Literal["command"] = "command"
    command: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_fillable)]
    """The program and its arguments, without a shell. `{python}`, `{overrides}`, `{config}`, `{seed}`, `{budget}` and
    `{folder}` are filled in."""
    folder: str = "."
    """Folder in which the command runs, relative to the sweep file."""
    code: Literal["git"] | Annotated[tuple[str, ...], Field(min_length=1)]
    """Code that identifies a run: the files of a list, relative to `folder`, or with `git` the commit of `folder` with
    its uncommitted changes. Changed code makes new runs."""
    requires: tuple[Annotated[str, AfterValidator(_requirement)], ...] = ()
    """Packages that the program needs, as for `pip install`: `trl>=1.16`. If its Python lacks one, nothing starts."""
    overrides_as: OverridesAs = "hydra"
    """Form of the overrides: `a.b=1`, `--a.b 1`, `--a_b 1`, or environment variables `A_B`. `{config}` and
    `run.settings` have them in any case."""
    compute: Annotated[str, Field(min_length=1)] = "compute"
    """Name of the unit in which the program counts compute, such as `tokens` or `GPU-hours`."""
    evaluation: LoggedEvaluation
    """The evaluations that the program logs."""
    log: ProgramOwnLog | None = None
    """The program's own log, if it does not log with `ablations.start()`."""
    threads: Annotated[int, Field(ge=1, le=4096), Unit("threads")] = 1
    """CPU threads of a run."""
    first_row_within_s: Annotated[float, Field(gt=0, le=1e9), Unit("seconds")] = 600.0
    """Time limit for the first logged evaluation; a run that misses it is ended as failed."""
    grace_s: Annotated[float, Field(gt=0, le=1e6), Unit("seconds")] = 30.0
    """Time between SIGTERM and SIGKILL when the platform ends the program."""


OUTSIDE_OF_PROGRAM = ("folder", "requires", "compute", "evaluation", "threads", "first_row_within_s", "grace_s")
"""Settings that change no result of the program."""


class CommandRecipe(Program):
    """Everything that determines a run of a program, apart from its seed.

    Numbers of a configuration that are not finite are written in JSON as `Infinity`, `-Infinity` and `NaN`.
    """

    model_config = ConfigDict(ser_json_inf_nan="constants")
    code_sha256: dict[str, str]
    """SHA-256 of each named file; of a git folder its commit and the hash of its uncommitted changes."""
    configuration: dict[str, Any]
    """The user's configuration as written."""
    overrides: dict[str, Any]
    """Dotted path to value, for all paths whose value differs from the configuration's; a new path begins with `+`."""
    compute_unit_gpu_hours: ClassVar[float] = 1.0
    """Budgets are in the unit in which the program counts."""

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration with the overrides."""
        settings = copy.deepcopy(self.configuration)
        for path, value in self.overrides.items():
            *above, last = path.removeprefix(NEW).split(".")
            holder: Any = settings
            for part in above:
                holder = holder[int(part)] if isinstance(holder, list) else holder.setdefault(part, {})
            holder[int(last) if isinstance(holder, list) else last] = value
        return settings

    @property
    def compute_name(self) -> str:
        """Name of the compute in tables."""
        return self.compute

    @property
    def total_threads(self) -> int:
        """CPU threads of all processes of the run."""
        return self.threads

    @property
    def code_version(self) -> str:
        """The version of the program: its commit, with `+dirty` if edited, or ten digits of the hash of its files."""
        if self.code == "git":
            return self.code_sha256[COMMIT][:10] + ("+dirty" if len(self.code_sha256) > 1 else "")
        return hashlib.sha256(json.dumps(self.code_sha256, sort_keys=True).encode()).hexdigest()[:10]

    def check_budget(self, compute: float) -> None:
        """Accepts any budget: only the program knows its schedule."""

    def canonical(self, *blocks: str) -> dict[str, Any]:
        """All settings that determine a run; with `blocks`, those that all variants of the program share."""
        settings = self.model_dump(mode="json", exclude=set(OUTSIDE_OF_PROGRAM))
        varied = ("configuration", "overrides") if blocks else ()
        return {name: value for name, value in settings.items() if name not in varied}

    def canonical_json(self) -> str:
        """All settings that determine a run, in one canonical line."""
        return json.dumps(self.canonical(), sort_keys=True, separators=(",", ":"))

    def identity(self, seed: int) -> str:
        """Name of the run, 12 hex digits: the hash of the recipe and the seed."""
        return hashlib.sha256(f"{self.canonical_json()}#{seed}".encode()).hexdigest()[:12]


def own_recipes(recipes: Mapping[str, "AnyRecipe"]) -> dict[str, ResolvedRecipe]:
    """The recipes of the platform's own trainer, by name; those of programs are left out."""
    return {name: recipe for name, recipe in recipes.items() if isinstance(recipe, ResolvedRecipe)}


AnyRecipe = ResolvedRecipe | CommandRecipe
"""Any recipe that a run folder may hold."""


def recipe_from_stored(stored: dict[str, Any]) -> AnyRecipe:
    """The recipe in a recipe.json."""
    if stored.get("type") == "command":
        return CommandRecipe.model_validate(stored)
    return ResolvedRecipe.from_stored(stored)
