"""Episodes: a task of several turns with an environment, which may be a library's, a class of the user's own, or ours.

tasks:
  - {type: episodes, environment: "textarena:Wordle-v0-raw", turns: 6, train: 512, validation: 64}
"""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from scalerl.frozen import Count, Frozen, Unit
from scalerl.recipe.file_hash import content_sha256
from scalerl.recipe.one_task import OneTask, Sha256
from scalerl.recipe.own import Own

HELD_OUT_FROM = 1_000_000_000
"""Seed of the first held-out episode; training seeds count from 0."""


@dataclass(frozen=True, kw_only=True)
class Library:
    """A package of environments: `Library(package="textarena", module="textarena_games")`."""

    package: str
    """Name for pip and for its version."""
    module: str
    """Module of `scalerl.environments` that adapts it."""


ENVIRONMENT_LIBRARIES = {
    "textarena": Library(package="textarena", module="textarena_games"),
    "gem": Library(package="gem-llm", module="gem_games"),
    "gymnasium": Library(package="gymnasium", module="gymnasium_texts"),
    "skyrl_gym": Library(package="skyrl-gym", module="skyrl_environments"),
    "reasoning_gym": Library(package="reasoning-gym", module="reasoning_problems"),
}
"""Libraries by the word before the colon of an environment's name."""
GAMES = ("guess",)
"""Environments of this package."""


class OwnEnvironment(Own):
    """An environment of your own ([Your own environment](own.md#an-environment)): a class with `start` and `act`."""


class AgentProgram(Frozen):
    """An agent of your own, which asks the policy as if it were OpenAI ([Agents](episodes.md#an-agent-program)).

    It is started for each rollout, with OPENAI_BASE_URL and OPENAI_API_KEY in its environment and `{"seed": 17, "row":
    {...}}` on standard input. The last line that it prints is its reward: `{"reward": 1.0, "end": "won"}`.
    """

    type: Literal["program"] = "program"
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    """The program and its arguments, without a shell: `[python, agent.py]`. `{python}` is the interpreter that runs the
    platform. Files among them are searched for beside the sweep file, then in the folder where the command is run."""
    code: tuple[str, ...] = ()
    """Further files or folders that identify a run; files of the command do already. Changed code makes new runs."""
    at_once: Count = 16
    """Programs of one generator that run at the same time."""
    folder: str = "."
    """Folder in which it runs, with its files; filled in, and not part of a run's identity."""
    folder_sha256: tuple[str, ...] | None = None
    """Hash and name of each file; filled in when the recipe is resolved."""

    @model_validator(mode="after")
    def _read_files(self) -> Self:
        if self.folder_sha256 is None:
            places = [Path(self.folder).expanduser().absolute(), Path.cwd()]
            named = [*self.command, *self.code]
            folder = next((one for one in places if any((one / name).is_file() for name in named)), places[0])
            # Frozen for its users; here it is still being made.
            object.__setattr__(self, "folder", str(folder))
            object.__setattr__(self, "folder_sha256", self.hashes())
        return self

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files and folders that identify it."""
        return (*(name for name in self.command if (Path(self.folder) / name).is_file()), *self.code)

    def hashes(self) -> tuple[str, ...]:
        """Hash and name of each file as it is now."""
        return tuple(f"{content_sha256(Path(self.folder) / name, 'code')} {name}" for name in self.files)

    @property
    def title(self) -> str:
        """Name of its first file, or of the program."""
        return Path((*self.files, *self.command)[0]).stem


def _kind(environment: Any) -> Any:
    """Tag of an environment in its union."""
    if isinstance(environment, dict):
        return environment.get("type")
    return environment.type if isinstance(environment, OwnEnvironment | AgentProgram) else "name"


_Ours = Annotated[OwnEnvironment, Tag("custom")] | Annotated[AgentProgram, Tag("program")]
AnyEnvironment = Annotated[Annotated[str, Tag("name")] | _Ours, Discriminator(_kind)]


class Episodes(OneTask):
    """Several turns with an environment (`scalerl.environments`); its pass rate is the share of episodes won.

    The token limits of `generation` hold for each turn.
    """

    type: Literal["episodes"] = "episodes"
    environment: AnyEnvironment
    """`guess`, the game of this package; library and name, as in `textarena:Wordle-v0-raw`, of textarena, gem,
    gymnasium, skyrl_gym or reasoning_gym; {type: custom, function: "my_games:Doubler"} for a class of your own; or
    {type: program, command: [python, agent.py]} for an agent that asks the policy over HTTP."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of the environment."""
    turns: Annotated[int, Field(ge=1, le=10_000), Unit("turns")] = 8
    """Turns of the policy after which an episode ends as `too_many_turns`."""
    tokens_per_turn: Annotated[Count, Unit("tokens")] | None = None
    """Tokens of the policy in one turn, thinking included; null leaves the limits of `generation`. A longer turn is cut
    there, and the environment gets what was written."""
    context_tokens: Annotated[Count, Unit("tokens")] = 2048
    """Tokens of a whole episode, with everything that the environment says; an episode without room for another turn
    ends as `too_long`."""
    history: Literal["template", "keep"] = "template"
    """Turns always stay as they were sampled. template: a chat template that writes earlier turns in another way, such
    as one that drops their thoughts, is refused. keep: it is taken, and the policy reads its earlier turns as it wrote
    them, which the model may not be used to."""
    train: Annotated[int, Field(ge=1, le=100_000_000), Unit("prompts")] = 256
    """Training episodes of different seeds; a prompt is the start of one, and a group repeats it."""
    validation: Annotated[int, Field(ge=1, le=10_000_000), Unit("prompts")] = 64
    """Held-out episodes, whose seeds are never trained on."""
    path: Annotated[str, Field(min_length=1)] | None = None
    """JSON lines with a row for each episode, which the environment gets beside the seed; null gives it an empty row.
    `train` and `validation` then choose rows by the hash of their content. Not part of a run's identity."""
    path_sha256: Sha256 = None
    """Hash of the content, filled in when the recipe is resolved."""
    credit: Literal["episode", "turn"] = "episode"
    """episode: one advantage for all turns, from the sum of their rewards. turn: each turn has its own, from the
    rewards from this turn on, compared with the same turn of the group's other episodes (arXiv 2505.11821)."""
    discount: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Factor by which a reward counts less for each turn before it."""
    latency_s: Annotated[float, Field(ge=0, le=3600), Unit("s")] = 0.0
    """Time of one answer of the environment on the virtual clock; the wall clock measures it."""
    time_limit_s: Annotated[float, Field(gt=0, le=3600), Unit("s")] = 10.0
    """Time for one answer of the environment; a longer one ends the episode as `timed_out`, without training on it."""
    version: str | None = None
    """Version of the library, filled in when the recipe is resolved; another version makes new runs."""

    @field_validator("path")
    @classmethod
    def _absolute(cls, path: str | None) -> str | None:
        return None if path is None else str(Path(path).expanduser().absolute())

    @field_validator("environment")
    @classmethod
    def _known(cls, environment: AnyEnvironment) -> AnyEnvironment:
        if isinstance(environment, str):
            library, _, inside = environment.partition(":")
            if environment not in GAMES and (library not in ENVIRONMENT_LIBRARIES or not inside):
                known = ", ".join(f"{name}:NAME" for name in ENVIRONMENT_LIBRARIES)
                raise ValueError(
                    f"found {environment!r}; write {', '.join(GAMES)}, a library and a name ({known}), or {{type: "
                    f'custom, function: "my_games:Doubler"}} for a class of your own'
                )
        return environment

    @model_validator(mode="after")
    def _filled_in(self) -> Self:
        # Frozen for its users; here it is still being made.
        if self.path is not None and self.path_sha256 is None:
            object.__setattr__(self, "path_sha256", content_sha256(Path(self.path), "path"))
        if isinstance(self.environment, AgentProgram):
            for name, given, only in (
                ("settings", self.settings, {}),
                ("credit", self.credit, "episode"),
                ("discount", self.discount, 1),
            ):
                if given != only:
                    raise ValueError(f"{name} has no effect on a program, which gives one reward at its end; remove it")
        if self.version is None and (library := self.library) is not None:
            try:
                object.__setattr__(self, "version", version(library.package))
            except PackageNotFoundError:
                raise ValueError(
                    f"environment {self.environment!r} needs the package {library.package}: pip install "
                    f"{library.package}"
                ) from None
        return self

    @property
    def library(self) -> Library | None:
        """Package that the environment comes from; None for ours and for the user's own."""
        return (
            ENVIRONMENT_LIBRARIES.get(self.environment.partition(":")[0]) if isinstance(self.environment, str) else None
        )

    @property
    def title(self) -> str:
        """Name of its prompts and rows: that of the environment, unless it has its own."""
        if self.name:
            return self.name
        if isinstance(self.environment, Own):
            return self.environment.function_name
        named = self.environment.title if isinstance(self.environment, AgentProgram) else self.environment
        return "".join(one if one.isalnum() or one in "._-" else "_" for one in named.rpartition(":")[2])

    @property
    def held_out_share(self) -> float:
        """Share of its episodes that is held out."""
        return self.validation / (self.train + self.validation)


def turn_limit(settings: Episodes, max_tokens: int) -> int:
    """Tokens that one turn may have, given the limit of `generation`."""
    return min(max_tokens, settings.tokens_per_turn or max_tokens)
